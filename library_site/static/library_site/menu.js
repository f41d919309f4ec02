// Closes open menus, as people expect it: by Escape, which gives the focus back, and by a click beside them. A menu that
// asks for a text has the focus there.
'use strict';
{
    const listOpen = () => document.querySelectorAll('details.menu[open]');

    document.addEventListener('click', event => {
        for (const menu of listOpen()) {
            if (!menu.contains(event.target)) {
                menu.open = false;
            }
        }
    });
    // The event does not bubble.
    document.addEventListener('toggle', event => {
        const field = event.target.matches('details.menu[open]') && event.target.querySelector('input[type=text]');
        if (field) {
            field.select();
        }
    }, true);
    document.addEventListener('keydown', event => {
        if (event.key !== 'Escape') {
            return;
        }
        for (const menu of listOpen()) {
            const hadFocus = menu.contains(document.activeElement);
            menu.open = false;
            if (hadFocus) {
                menu.querySelector('summary').focus();
            }
        }
    });
}
