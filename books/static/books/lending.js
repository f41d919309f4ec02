// Lending: Enter puts a scan into a queue, from which the scans are sent one by one. A scan stays in the queue, and in
// the browser's storage, until the library has answered it: nothing is lost when the library is out of reach, when the
// session ends, or when the page is loaded again. A request names the wanted state and the version that was seen, so
// sending it again changes nothing more.
'use strict';
{
    const REPEAT_TIME = 2000;
    const ANSWER_TIME = 15000;
    const FIRST_PAUSE = 500;
    const MAX_PAUSE = 15000;
    const MAX_RETRY_AFTER = 60;
    const MAX_FAILURES = 5;
    const KEPT_SCANS = 200;
    const KEPT_TIME = 12 * 3600 * 1000;
    const STATE_KEYS = {F2: 'lent', F8: 'available'};
    const OPPOSITES = {lent: 'available', available: 'lent'};

    const element = name => document.getElementById(`lending-${name}`);
    const texts = document.querySelector('.lending').dataset;
    const form = element('form');
    const box = element('code');
    const tones = element('tones');
    const rows = new Map();
    const recentCodes = new Map();
    // The scans of one person in one page, the oldest first, those that wait and those that are answered.
    const prefix = `library.lending.${texts.user}.`;
    let scans = [];
    let lastNumber = 0;
    let isSending = false;
    let pauses = 0;
    let endPause = () => {};
    let audio = null;

    // The request got no answer that settles it, so it has to be sent again.
    class Unsettled extends Error {
        constructor(text, {seconds = NaN, isFailure = false} = {}) {
            super(text);
            this.seconds = seconds;
            this.isFailure = isFailure;
        }
    }

    const makeId = () => {
        const random = crypto.getRandomValues(new Uint32Array(2));
        return [Date.now(), ++lastNumber, ...random].map(number => number.toString(36)).join('-');
    };
    const key = prefix + makeId();

    // Storage

    const store = () => {
        const oldest = Date.now() - KEPT_TIME;
        const settled = scans.filter(scan => scan.outcome !== 'waiting');
        const dropped = new Set(settled.filter((scan, index) => index < settled.length - KEPT_SCANS || scan.at < oldest));
        for (const scan of dropped) {
            rows.get(scan.id)?.remove();
            rows.delete(scan.id);
        }
        scans = scans.filter(scan => !dropped.has(scan));
        try {
            localStorage.setItem(key, JSON.stringify(scans));
            return true;
        } catch {
            showTrouble(texts.unsaved);
            return false;
        }
    };

    const takeOver = oldKey => {
        const oldScans = JSON.parse(localStorage.getItem(oldKey) || '[]');
        scans = [...oldScans, ...scans];
        if (store()) {
            localStorage.removeItem(oldKey);
        }
        rows.forEach(row => row.remove());
        rows.clear();
        scans.forEach(showRow);
        send();
    };

    // Takes over the scans of pages that are closed. An open page holds a lock; this waits until it is released.
    const takeOverOthers = () => {
        const otherKeys = Object.keys(localStorage).filter(name => name.startsWith(prefix) && name !== key);
        for (const oldKey of otherKeys) {
            if (navigator.locks) {
                navigator.locks.request(oldKey, () => takeOver(oldKey));
            } else {
                takeOver(oldKey);
            }
        }
    };

    // Display

    const fill = (row, scan) => {
        const part = name => row.querySelector(`.lending-${name}`);
        const suffix = scan.wanted === 'lent' ? 'Lent' : 'Available';
        const states = {waiting: `to${suffix}`, changed: `now${suffix}`, unchanged: `already${suffix}`, refused: 'refused'};
        row.dataset.outcome = scan.outcome;
        part('title').textContent = scan.book ? scan.book.title : scan.code;
        if (scan.book) {
            part('title').href = scan.book.address;
        }
        part('state').textContent = texts[states[scan.outcome]];
        part('note').textContent = [scan.undoes ? texts.undo : '', scan.note].filter(Boolean).join(' ');
        if (scan.add) {
            const link = document.createElement('a');
            link.href = scan.add;
            link.textContent = texts.add;
            part('note').append(' ', link);
        }
        return row;
    };

    const makeRow = () => element('row').content.firstElementChild.cloneNode(true);

    const showRow = scan => {
        let item = rows.get(scan.id);
        if (!item) {
            item = document.createElement('li');
            item.append(makeRow());
            rows.set(scan.id, item);
            element('rows').prepend(item);
            element('heading').hidden = false;
        }
        fill(item.firstElementChild, scan);
    };

    const showWaiting = () => {
        const count = scans.filter(scan => scan.outcome === 'waiting').length;
        element('waiting').textContent = count ? `${texts.waiting} ${count}` : '';
    };

    const showTrouble = text => {
        if (element('trouble').textContent !== text) {
            element('trouble').textContent = text;
            element('sign-in').hidden = text !== texts.signedOut && text !== texts.otherUser;
            if (text) {
                play(false);
            }
        }
    };

    // Says what was not put into the queue.
    const say = text => {
        element('latest').textContent = text;
        play(false);
    };

    const play = isGood => {
        try {
            if (tones.checked) {
                playTone(isGood);
            }
        } catch {
            // A computer without sound lends all the same.
            tones.checked = false;
        }
    };

    const playTone = isGood => {
        audio ??= new AudioContext();
        audio.resume();
        const [oscillator, volume] = [audio.createOscillator(), audio.createGain()];
        const end = audio.currentTime + (isGood ? 0.1 : 0.35);
        oscillator.frequency.value = isGood ? 880 : 220;
        oscillator.type = isGood ? 'sine' : 'square';
        volume.gain.setValueAtTime(isGood ? 0.3 : 0.15, audio.currentTime);
        volume.gain.linearRampToValueAtTime(0, end);
        oscillator.connect(volume).connect(audio.destination);
        oscillator.start();
        oscillator.stop(end);
    };

    // Sending

    const ask = async (address, options) => {
        try {
            const answer = await fetch(address, {
                ...options, redirect: 'manual', cache: 'no-store', signal: AbortSignal.timeout(ANSWER_TIME),
            });
            return {answer, text: await answer.text()};
        } catch {
            throw new Unsettled(texts.unreachable);
        }
    };

    // Reads the page again for a token of the session, which may be a new one, and checks whose session it is.
    const renewToken = async () => {
        const {answer, text} = await ask(form.action, {headers: {Accept: 'text/html'}});
        if (answer.type === 'opaqueredirect') {
            throw new Unsettled(texts.signedOut);
        }
        if (answer.status === 403) {
            throw new Unsettled(texts.forbidden);
        }
        const page = new DOMParser().parseFromString(text, 'text/html');
        const user = page.querySelector('.lending')?.dataset.user;
        if (user && user !== texts.user) {
            throw new Unsettled(texts.otherUser);
        }
        const token = page.querySelector('#lending-form [name=csrfmiddlewaretoken]');
        if (token) {
            form.elements.namedItem('csrfmiddlewaretoken').value = token.value;
        }
    };

    const request = async (scan, address, options = {}) => {
        const headers = {Accept: 'application/json', 'X-Request-ID': scan.id};
        const {answer, text} = await ask(address, {...options, headers});
        if (answer.type === 'opaqueredirect') {
            throw new Unsettled(texts.signedOut);
        }
        if (answer.status === 403) {
            await renewToken();
            throw new Unsettled(texts.busy);
        }
        if (answer.status === 409 || answer.status === 429 || answer.status >= 500) {
            const seconds = parseInt(answer.headers.get('Retry-After'), 10);
            throw new Unsettled(texts.busy, {seconds, isFailure: answer.status === 500});
        }
        try {
            return {status: answer.status, body: answer.ok ? JSON.parse(text) : null};
        } catch {
            // Something between here and the library answered.
            throw new Unsettled(texts.unreachable);
        }
    };

    const settle = (scan, outcome, note = '') => {
        Object.assign(scan, {outcome, note: [scan.note, note].filter(Boolean).join(' ')});
        store();
        showRow(scan);
        element('latest').replaceChildren(fill(makeRow(), scan));
        play(outcome === 'changed');
    };

    // The scans before it are settled, so it is known what there is to undo.
    const prepareUndo = scan => {
        const original = scans.find(other => other.id === scan.undoes);
        if (original?.outcome !== 'changed') {
            return false;
        }
        const {book, version, wanted} = original;
        Object.assign(scan, {book: {...book, version, state: wanted}, wanted: OPPOSITES[wanted]});
        return true;
    };

    // After an undo the book is as the scan before the undone one left it, so that one can be undone, too.
    const updateUndone = ({undoes, book, version}) => {
        const original = scans.find(scan => scan.id === undoes);
        for (const scan of scans.filter(other => original && other.book?.id === book.id)) {
            if (scan.version === original.book.version) {
                scan.version = version;
            }
        }
    };

    const lookUp = async scan => {
        const {status, body} = await request(scan, `${texts.find}?${new URLSearchParams({code: scan.code})}`);
        if (status !== 200) {
            settle(scan, 'refused', texts.failed);
        } else if (!body.book) {
            scan.add = body.add;
            settle(scan, 'refused', body.message);
        } else {
            Object.assign(scan, {book: body.book, note: body.message});
        }
    };

    const change = async scan => {
        const {id, version} = scan.book;
        const token = form.elements.namedItem('csrfmiddlewaretoken').value;
        const body = new URLSearchParams({csrfmiddlewaretoken: token, book: id, version, state: scan.wanted});
        if (scan.isSent) {
            body.set('repeated', 'on');
        }
        scan.isSent = true;
        store();
        const answer = await request(scan, texts.change, {method: 'POST', body});
        if (answer.status === 200) {
            scan.version = answer.body.version;
            updateUndone(scan);
            settle(scan, 'changed');
        } else if (answer.status === 412 && !scan.undoes) {
            Object.assign(scan, {book: null, isSent: false});
            throw new Unsettled('', {seconds: 0});
        } else {
            settle(scan, 'refused', {404: texts.gone, 412: texts.changed}[answer.status] || texts.failed);
        }
    };

    const carryOut = async scan => {
        if (scan.undoes && !scan.book && !prepareUndo(scan)) {
            settle(scan, 'refused', texts.nothing);
            return;
        }
        if (!scan.book) {
            await lookUp(scan);
        }
        if (scan.outcome === 'waiting' && scan.book.state === scan.wanted) {
            settle(scan, 'unchanged');
        } else if (scan.outcome === 'waiting') {
            await change(scan);
        }
    };

    const pause = seconds => new Promise(resolve => {
        const ownTime = Math.min(FIRST_PAUSE * 2 ** pauses, MAX_PAUSE);
        endPause = resolve;
        setTimeout(resolve, seconds >= 0 ? Math.min(seconds, MAX_RETRY_AFTER) * 1000 : ownTime);
        pauses += 1;
    });

    const send = async () => {
        showWaiting();
        if (isSending) {
            return;
        }
        isSending = true;
        try {
            for (let scan; (scan = scans.find(other => other.outcome === 'waiting'));) {
                await sendOne(scan);
                showWaiting();
            }
        } finally {
            isSending = false;
        }
    };

    const sendOne = async scan => {
        try {
            await carryOut(scan);
            pauses = 0;
            showTrouble('');
        } catch (error) {
            if (!(error instanceof Unsettled)) {
                throw error;
            }
            scan.failures = (scan.failures || 0) + error.isFailure;
            if (scan.failures >= MAX_FAILURES) {
                settle(scan, 'refused', texts.failed);
            } else {
                showTrouble(error.message);
                await pause(error.seconds);
            }
        }
    };

    // Input

    const enqueue = members => {
        const scan = {id: makeId(), at: Date.now(), outcome: 'waiting', note: '', ...members};
        scans.push(scan);
        store();
        showRow(scan);
        send();
    };

    const readState = () => form.elements.namedItem('state').value;

    const selectState = state => {
        form.elements.namedItem('state').value = state;
        sessionStorage.setItem(prefix, state);
        box.focus();
    };

    const isRepeated = code => {
        const name = `${readState()} ${code.toUpperCase()}`;
        const isRecent = Date.now() - recentCodes.get(name) < REPEAT_TIME;
        recentCodes.set(name, Date.now());
        return isRecent;
    };

    const undo = () => {
        const last = scans.findLast(
            scan => !scan.undoes && !scan.isUndone && (scan.outcome === 'waiting' || scan.outcome === 'changed')
        );
        if (!last) {
            say(texts.nothing);
            return;
        }
        last.isUndone = true;
        enqueue({undoes: last.id, code: last.code, wanted: OPPOSITES[last.wanted], book: null});
    };

    const isUndoKey = event => event.key.toLowerCase() === 'z' && (event.ctrlKey || event.metaKey) && !event.shiftKey;

    form.addEventListener('submit', event => {
        event.preventDefault();
        const code = box.value.trim();
        box.value = '';
        box.focus();
        if (code && isRepeated(code)) {
            say(texts.repeated);
        } else if (code) {
            enqueue({code, wanted: readState(), book: null});
        }
    });
    document.addEventListener('keydown', event => {
        const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
        if (isPlain && STATE_KEYS[event.key]) {
            event.preventDefault();
            selectState(STATE_KEYS[event.key]);
        } else if (isUndoKey(event) && !box.value) {
            event.preventDefault();
            undo();
        } else if (isPlain && event.key.length === 1 && event.key !== ' ') {
            // A scan that begins while something else has the focus goes to the box, too.
            box.focus();
        }
    });
    for (const radio of form.elements.namedItem('state')) {
        radio.addEventListener('change', () => selectState(radio.value));
    }
    element('undo').addEventListener('click', () => {
        undo();
        box.focus();
    });
    tones.addEventListener('change', () => {
        localStorage.setItem('library.tones', tones.checked ? 'on' : 'off');
        box.focus();
    });
    for (const name of ['online', 'focus']) {
        window.addEventListener(name, () => endPause());
    }

    selectState(sessionStorage.getItem(prefix) || readState());
    tones.checked = localStorage.getItem('library.tones') !== 'off';
    element('tools').hidden = false;
    if (navigator.locks) {
        navigator.locks.request(key, () => new Promise(() => {}));
    }
    takeOverOthers();
}
