// Opens menus where the window has room, and scrolls those that are higher. Closes them as people expect it: by Escape,
// which gives the focus back, and by a click beside them. A menu that asks for a text has the focus there.
'use strict';
{
    const GAP = 8;
    const listOpen = () => document.querySelectorAll('details.menu[open]');

    const fit = (menu, panel) => {
        menu.classList.remove('up');
        panel.style.maxHeight = 'none';
        const below = innerHeight - panel.getBoundingClientRect().top - GAP;
        const above = panel.offsetParent.getBoundingClientRect().top - 2 * GAP;
        const isUp = panel.offsetHeight > below && above > below;
        menu.classList.toggle('up', isUp);
        panel.style.maxHeight = `${isUp ? above : below}px`;
        if (panel.getBoundingClientRect().right > innerWidth) {
            menu.classList.add('end');
        }
    };

    document.addEventListener('click', event => {
        for (const menu of listOpen()) {
            if (!menu.contains(event.target)) {
                menu.open = false;
            }
        }
    });
    // The event does not bubble.
    document.addEventListener('toggle', event => {
        if (!event.target.matches('details.menu[open]')) {
            return;
        }
        fit(event.target, event.target.querySelector('.menu-panel'));
        event.target.querySelector('input[type=text]')?.select();
    }, true);
    // Empty fields of a search are no part of its address.
    document.addEventListener('formdata', event => {
        if (event.target.getAttribute('method') === 'get') {
            [...event.formData].filter(([, value]) => !value).forEach(([name]) => event.formData.delete(name));
        }
    });
    document.addEventListener('keydown', event => {
        if (event.key !== 'Escape') {
            return;
        }
        for (const menu of listOpen()) {
            const hadFocus = menu.contains(document.activeElement);
            menu.open = false;
            event.preventDefault();
            if (hadFocus) {
                menu.querySelector('summary').focus();
            }
        }
    });
}
