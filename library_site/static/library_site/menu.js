// Closes open menus, as people expect it: by Escape, which gives the focus back, and by a click beside them.
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
