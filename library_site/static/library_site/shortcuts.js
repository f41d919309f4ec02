// The keys / and ? on every page of the admin, and those of the buttons and links of a page, which are in data-key. Who
// speaks to the computer can turn them off (WCAG 2.2, 2.1.4).
'use strict';
{
    const OFF = 'library.shortcuts.off';
    const TYPED = 'input:not([type=checkbox], [type=radio], [type=submit], [type=button]), textarea, select';
    const BOXES = '#scan-code, #searchbar, #lending-code';
    const dialog = document.getElementById('shortcuts');
    const opener = document.getElementById('shortcuts-open');
    const choice = document.getElementById('shortcuts-on');

    const isTyped = target => target.matches(TYPED) && !(target.matches(BOXES) && target.value === '');

    const moveToBox = () => {
        const box = document.querySelector(BOXES);
        if (box) {
            box.focus();
            box.select();
        } else if (dialog.dataset.scan) {
            location.assign(dialog.dataset.scan);
        }
    };

    const actions = {'/': moveToBox, '?': () => dialog.showModal()};
    for (const target of document.querySelectorAll('[data-key]')) {
        actions[target.dataset.key] = () => target.click();
    }

    document.addEventListener('keydown', event => {
        const action = actions[event.key.toLowerCase()];
        // A key that is held down repeats itself, on the next page, too.
        const isPlain = !event.ctrlKey && !event.altKey && !event.metaKey && !event.repeat && !event.defaultPrevented;
        if (action && isPlain && choice.checked && !dialog.open && !isTyped(event.target)) {
            event.preventDefault();
            action();
        }
    });
    choice.checked = localStorage.getItem(OFF) === null;
    choice.addEventListener('change', () => {
        if (choice.checked) {
            localStorage.removeItem(OFF);
        } else {
            localStorage.setItem(OFF, 'yes');
        }
    });
    opener.addEventListener('click', () => dialog.showModal());
    opener.hidden = false;
}
