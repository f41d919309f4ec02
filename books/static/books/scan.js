// Opens a numbered book by its digit. A scanner types digits, too, but many of them in no time: they go to the box.
'use strict';
{
    const PAUSE = 250;
    const box = document.getElementById('scan-code');
    const links = document.querySelectorAll('[data-digit]');
    let timer = null;

    const open = () => {
        const link = document.querySelector(`[data-digit="${box.value}"]`);
        if (link) {
            location.assign(link.href);
        }
    };
    // The next scan takes the place of one without a result.
    box.select();
    if (links.length) {
        box.addEventListener('input', () => {
            clearTimeout(timer);
            if (/^[1-9]$/.test(box.value)) {
                timer = setTimeout(open, PAUSE);
            }
        });
        box.form.addEventListener('submit', () => clearTimeout(timer));
    }
}
