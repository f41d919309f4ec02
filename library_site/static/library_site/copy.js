// Buttons that copy the code beside them, where the browser permits it. To load the page again makes no second secret.
'use strict';
history.replaceState(null, '', document.querySelector('.secrets').dataset.address);
if (navigator.clipboard) {
    for (const button of document.querySelectorAll('.secrets button')) {
        button.hidden = false;
        button.addEventListener('click', async () => {
            await navigator.clipboard.writeText(button.parentElement.querySelector('code').textContent);
            button.parentElement.querySelector('output').hidden = false;
        });
    }
}
