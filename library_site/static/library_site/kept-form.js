// Keeps a form that was sent after the session had ended, and fills it in again after the sign-in: in this tab, for the
// same person, for an hour. The sign-in page has no user, and says that the form is kept.
'use strict';
{
    const KEY = 'library.form';
    const HOUR = 3600 * 1000;
    const FIELDS = '[name]:not([type=password], [type=file], [name=csrfmiddlewaretoken], button, [type=submit])';
    const {user} = document.currentScript.dataset;
    const note = document.getElementById('kept-form');
    const kept = JSON.parse(sessionStorage.getItem(KEY));

    // A field of the form may have the name "action".
    const getAddress = form => new URL(form.getAttribute('action') || '', location).href;
    const isKept = form => form.matches('#content form[method=post]');
    const isSet = field => !field.matches('[type=checkbox], [type=radio]') || field.checked;

    const keep = event => {
        if (!event.defaultPrevented && isKept(event.target)) {
            const fields = [...event.target.querySelectorAll(FIELDS)].filter(isSet).map(({name, value}) => [name, value]);
            const address = getAddress(event.target);
            sessionStorage.setItem(KEY, JSON.stringify({user, address, fields, time: Date.now()}));
        }
    };

    const fill = form => {
        const others = [...kept.fields];
        for (const field of form.querySelectorAll(FIELDS)) {
            if (field.matches('[type=checkbox], [type=radio]')) {
                field.checked = kept.fields.some(([name, value]) => name === field.name && value === field.value);
                continue;
            }
            const index = others.findIndex(([name]) => name === field.name);
            if (index >= 0) {
                [[, field.value]] = others.splice(index, 1);
            }
        }
    };

    if (!user) {
        note.hidden = !kept;
        sessionStorage.setItem(KEY, JSON.stringify(kept && {...kept, isInterrupted: true}));
    } else {
        sessionStorage.removeItem(KEY);
        if (kept?.isInterrupted && kept.user === user && Date.now() - kept.time < HOUR) {
            const forms = [...document.forms].filter(form => isKept(form) && getAddress(form) === kept.address);
            forms.forEach(fill);
            note.hidden = !forms.length;
        }
        document.addEventListener('submit', keep);
    }
}
