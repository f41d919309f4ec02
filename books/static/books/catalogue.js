// Fills the form of a new book from a catalogue: by the button, or by a scan. What was found is shown before it is taken.
'use strict';
{
    const form = document.getElementById('book_form');
    const box = document.getElementById('catalogue');
    const [status, found] = [box.querySelector('[role=status]'), box.querySelector('div')];
    const field = name => form.elements.namedItem(name);
    let latestQuestion = 0;

    // Values that were typed stay, unless the librarian ticks those of the catalogue.
    const compare = input => {
        const typed = field(input.dataset.field).value.trim();
        const row = input.closest('tr');
        row.querySelector('.typed').textContent = typed;
        if (typed && typed !== input.value) {
            input.checked = false;
            row.classList.add('differs');
        }
    };

    const take = () => {
        for (const input of found.querySelectorAll('input:checked')) {
            field(input.dataset.field).value = input.value;
            field(input.dataset.field).dispatchEvent(new Event('change'));
        }
        found.replaceChildren();
        status.textContent = box.dataset.taken;
        const empty = ['title', 'author', 'year', 'genre'].find(name => !field(name).value);
        field(empty || 'title').focus();
    };

    const show = entry => {
        status.textContent = entry ? entry.dataset.message : box.dataset.failure;
        found.replaceChildren(...(entry ? entry.childNodes : []));
        found.querySelectorAll('input').forEach(compare);
        const button = found.querySelector('button');
        if (!button) {
            return;
        }
        button.addEventListener('click', take);
        // After a scan, Enter takes what was found. Who types in the meantime goes on typing.
        if (document.activeElement === field('title') && !field('title').value) {
            button.focus();
        }
    };

    const ask = async () => {
        const question = ++latestQuestion;
        status.textContent = box.dataset.waiting;
        found.replaceChildren();
        const body = new FormData();
        body.set('isbn', field('isbn').value);
        body.set('csrfmiddlewaretoken', field('csrfmiddlewaretoken').value);
        const answer = await fetch(box.dataset.address, {method: 'POST', body}).catch(() => null);
        const text = answer ? await answer.text() : '';
        await released;
        if (question === latestQuestion) {
            show(new DOMParser().parseFromString(text, 'text/html').getElementById('catalogue-entry'));
        }
    };

    box.hidden = false;
    box.querySelector('button').addEventListener('click', ask);
    field('isbn').addEventListener('keydown', event => {
        // A scanner ends with Enter.
        if (event.key === 'Enter' && field('isbn').value.trim()) {
            ask();
        }
    });
    // The scan box leads here with an ISBN.
    if (field('isbn').value && !field('title').value) {
        ask();
    }
}
