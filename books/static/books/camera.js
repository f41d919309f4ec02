// Reads the ISBN of a book with the camera, where the browser can read bar codes (Shape Detection API, BarcodeDetector).
// What it reads goes the way of what a scanner types. Elsewhere there is no button.
'use strict';
{
    const FORMAT = 'ean_13';
    const PAUSE = 150;
    // A code that stays in view is one scan.
    const GONE_TIME = 2000;
    const dialog = document.getElementById('camera');
    const video = dialog.querySelector('video');
    const said = dialog.querySelector('[role=status]');
    const buttons = [...document.querySelectorAll('[data-camera]')];
    const seen = {code: '', at: 0};
    let stream = null;
    let deliver = null;

    const canRead = async () => 'BarcodeDetector' in window && Boolean(navigator.mediaDevices?.getUserMedia)
        && (await BarcodeDetector.getSupportedFormats()).includes(FORMAT);

    // The form of lending takes one code after the other: the camera stays open. The others lead on.
    const deliveries = {
        submit: input => {
            dialog.close();
            input.form.requestSubmit();
        },
        queue: input => input.form.requestSubmit(),
        fill: input => {
            dialog.close();
            input.dispatchEvent(new Event('change', {bubbles: true}));
            input.form.elements.namedItem('title').focus();
        },
    };

    const isNew = code => {
        const now = Date.now();
        const result = code !== seen.code || now - seen.at > GONE_TIME;
        Object.assign(seen, {code, at: now});
        return result;
    };

    const look = async detector => {
        while (stream) {
            const [found] = await detector.detect(video).catch(() => []);
            if (found && stream && isNew(found.rawValue)) {
                said.textContent = found.rawValue;
                deliver(found.rawValue);
            }
            await new Promise(resolve => setTimeout(resolve, PAUSE));
        }
    };

    const stop = () => {
        stream?.getTracks().forEach(track => track.stop());
        stream = null;
        video.srcObject = null;
    };

    const open = async button => {
        const input = document.getElementById(button.dataset.camera);
        const isQueue = button.dataset.cameraUse === 'queue';
        deliver = code => {
            input.value = code;
            deliveries[button.dataset.cameraUse](input);
        };
        Object.assign(seen, {code: '', at: 0});
        said.textContent = '';
        // What lending says stands below, so the page must stay in reach.
        if (isQueue) {
            dialog.show();
        } else {
            dialog.showModal();
        }
        try {
            stream = await navigator.mediaDevices.getUserMedia({video: {facingMode: 'environment'}});
        } catch {
            said.textContent = dialog.dataset.refused;
            return;
        }
        if (!dialog.open) {
            stop();
            return;
        }
        video.srcObject = stream;
        await video.play();
        look(new BarcodeDetector({formats: [FORMAT]}));
    };

    dialog.addEventListener('close', stop);
    dialog.querySelector('button').addEventListener('click', () => dialog.close());
    window.addEventListener('pagehide', stop);
    canRead().then(readable => {
        for (const button of readable ? buttons : []) {
            button.hidden = false;
            button.addEventListener('click', () => open(button));
        }
    });
}
