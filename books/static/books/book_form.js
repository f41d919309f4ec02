// The form of a book: Enter in the ISBN moves on, and suggestions and warnings come while it is filled in.
'use strict';

// What comes while a button is pressed would move the button, and the click would be lost. catalogue.js waits, too.
let released = Promise.resolve();

{
    const PAUSE = 150;
    const WATCHED = ['isbn', 'title', 'author', 'year'];
    const SUGGESTED = ['author', 'genre'];
    const form = document.getElementById('book_form');
    const field = name => form.elements.namedItem(name);
    let latestCheck = 0;

    const waitForRelease = () => {
        released = new Promise(resolve => {
            for (const end of ['pointerup', 'pointercancel']) {
                // On a touch screen, the click comes a little later.
                document.addEventListener(end, () => setTimeout(resolve, PAUSE), {once: true});
            }
        });
    };

    // A scanner ends with Enter, which would send the form half empty.
    const moveOn = event => {
        if (event.key === 'Enter') {
            event.preventDefault();
            field('title').focus();
        }
    };

    const check = async changed => {
        const number = ++latestCheck;
        const warnings = document.getElementById('book-warnings');
        const values = new FormData(form);
        values.delete('csrfmiddlewaretoken');
        values.set('book', warnings.dataset.book);
        const answer = await fetch(`${warnings.dataset.address}?${new URLSearchParams(values)}`).catch(() => null);
        const text = answer && answer.ok && !answer.redirected ? await answer.text() : '';
        await released;
        if (!text || number !== latestCheck) {
            return;
        }
        const page = new DOMParser().parseFromString(text, 'text/html');
        const fresh = page.getElementById('book-warnings');
        const shown = '[name=shown_warnings]';
        warnings.querySelector(shown).value = fresh.querySelector(shown).value;
        for (const place of form.querySelectorAll('[data-member]')) {
            // The element stays, so that a screen reader says what is new in it.
            place.replaceChildren(...page.querySelector(`[data-member=${place.dataset.member}]`).childNodes);
        }
        if (changed === 'isbn' && fresh.dataset.isbn) {
            field('isbn').value = fresh.dataset.isbn;
        }
    };

    const suggest = name => {
        const input = field(name);
        const list = document.createElement('datalist');
        let timer = null;
        list.id = `suggested-${name}`;
        input.after(list);
        input.setAttribute('list', list.id);
        input.setAttribute('autocomplete', 'off');
        const load = async () => {
            const query = new URLSearchParams({member: name, text: input.value});
            const {suggestions} = document.getElementById('book-warnings').dataset;
            const answer = await fetch(`${suggestions}?${query}`).catch(() => null);
            if (answer && answer.ok && !answer.redirected) {
                list.replaceChildren(...(await answer.json()).map(text => new Option(text, text)));
            }
        };
        input.addEventListener('input', () => {
            clearTimeout(timer);
            timer = setTimeout(load, PAUSE);
        });
    };

    // People who may only look have no inputs.
    if (form && field('isbn')) {
        field('isbn').addEventListener('keydown', moveOn);
        for (const name of WATCHED) {
            field(name).addEventListener('change', () => check(name));
        }
        SUGGESTED.forEach(suggest);
        document.addEventListener('pointerdown', waitForRelease);
    }
}
