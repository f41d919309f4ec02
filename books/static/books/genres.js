// Proposes a name for the ticked genres: that of the most books.
'use strict';
{
    const form = document.getElementById('genres');
    const input = document.getElementById('new-genre');
    let isTyped = false;

    form?.addEventListener('change', event => {
        if (event.target.name !== 'genres') {
            return;
        }
        const ticked = [...form.querySelectorAll('[name=genres]:checked')].sort((a, b) => b.dataset.books - a.dataset.books);
        const names = ticked.map(box => box.value).filter(name => name);
        input.list.replaceChildren(...names.map(name => new Option(name, name)));
        if (!isTyped) {
            input.value = names[0] || '';
        }
    });
    input?.addEventListener('input', () => {
        isTyped = input.value !== '';
    });
}
