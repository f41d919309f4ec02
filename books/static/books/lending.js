// Lending: Enter puts a scan into the queue of this tab, from which the scans are sent one by one. A request without an
// answer stops the queue until "Try again", the next scan, or the network is back: nothing is lost while the tab is open.
// A request names the wanted state and the version that was seen, so sending it again changes nothing more.
'use strict';
{
    const REPEAT_TIME = 2000;
    const ANSWER_TIME = 15000;
    const STATE_KEYS = {F2: 'lent', F8: 'available'};
    const OPPOSITES = {lent: 'available', available: 'lent'};

    const element = name => document.getElementById(`lending-${name}`);
    const texts = document.querySelector('.lending').dataset;
    const form = element('form');
    const box = element('code');
    const recentCodes = new Map();
    // The oldest first, those that wait and those that are answered.
    const scans = [];
    let isSending = false;

    // The request got no answer that settles it, so it has to be sent again.
    class Unsettled extends Error {}

    const isWaiting = scan => scan.outcome === 'waiting';

    // Display

    const fill = (row, scan) => {
        const part = name => row.querySelector(`.lending-${name}`);
        const suffix = scan.wanted === 'lent' ? 'Lent' : 'Available';
        const states = {waiting: `to${suffix}`, changed: `now${suffix}`, unchanged: `already${suffix}`, refused: 'refused'};
        row.dataset.outcome = scan.outcome;
        part('title').textContent = scan.book ? scan.book.title : scan.code;
        if (scan.book) {
            part('title').href = scan.book.address;
        }
        part('state').textContent = texts[states[scan.outcome]];
        part('note').textContent = [scan.undoes ? texts.undo : '', scan.note].filter(Boolean).join(' ');
        if (scan.add) {
            const link = document.createElement('a');
            link.href = scan.add;
            link.textContent = texts.add;
            part('note').append(' ', link);
        }
        return row;
    };

    const makeRow = () => element('row').content.firstElementChild.cloneNode(true);

    const showRow = scan => {
        if (!scan.row) {
            const item = document.createElement('li');
            scan.row = makeRow();
            item.append(scan.row);
            element('rows').prepend(item);
            element('heading').hidden = false;
        }
        fill(scan.row, scan);
    };

    const showWaiting = () => {
        const count = scans.filter(isWaiting).length;
        element('waiting').textContent = count ? `${texts.waiting} ${count}` : '';
    };

    const showTrouble = text => {
        element('trouble').textContent = text;
        element('again').hidden = !text;
        element('sign-in').hidden = text !== texts.signedOut && text !== texts.otherUser;
    };

    // Says what was not put into the queue.
    const say = text => {
        element('latest').textContent = text;
    };

    // Sending

    const ask = async (address, options) => {
        try {
            const answer = await fetch(address, {
                ...options, redirect: 'manual', cache: 'no-store', signal: AbortSignal.timeout(ANSWER_TIME),
            });
            return {answer, text: await answer.text()};
        } catch {
            throw new Unsettled(texts.unreachable);
        }
    };

    // Reads the page again for a token of the session, which may be a new one, and checks whose session it is.
    const renewToken = async () => {
        const {answer, text} = await ask(form.action, {headers: {Accept: 'text/html'}});
        if (answer.type === 'opaqueredirect') {
            throw new Unsettled(texts.signedOut);
        }
        if (answer.status === 403) {
            throw new Unsettled(texts.forbidden);
        }
        const page = new DOMParser().parseFromString(text, 'text/html');
        const user = page.querySelector('.lending')?.dataset.user;
        if (user && user !== texts.user) {
            throw new Unsettled(texts.otherUser);
        }
        const token = page.querySelector('#lending-form [name=csrfmiddlewaretoken]');
        if (token) {
            form.elements.namedItem('csrfmiddlewaretoken').value = token.value;
        }
    };

    // `values` are sent by POST, with the token of the page.
    const request = async (address, values = null, isRenewed = false) => {
        const token = form.elements.namedItem('csrfmiddlewaretoken').value;
        const options = values && {method: 'POST', body: new URLSearchParams({...values, csrfmiddlewaretoken: token})};
        const {answer, text} = await ask(address, {...options, headers: {Accept: 'application/json'}});
        if (answer.type === 'opaqueredirect') {
            throw new Unsettled(texts.signedOut);
        }
        if (answer.status === 403 && !isRenewed) {
            await renewToken();
            return request(address, values, true);
        }
        if ([403, 409, 429].includes(answer.status) || answer.status > 500) {
            throw new Unsettled(texts.busy);
        }
        try {
            return {status: answer.status, body: answer.ok ? JSON.parse(text) : null};
        } catch {
            // Something between here and the library answered.
            throw new Unsettled(texts.unreachable);
        }
    };

    const settle = (scan, outcome, note = '') => {
        Object.assign(scan, {outcome, note: [scan.note, note].filter(Boolean).join(' ')});
        showRow(scan);
        element('latest').replaceChildren(fill(makeRow(), scan));
    };

    // The scans before it are settled, so it is known what there is to undo.
    const prepareUndo = scan => {
        const original = scan.undoes;
        if (original.outcome !== 'changed') {
            return false;
        }
        const {book, version, wanted} = original;
        Object.assign(scan, {book: {...book, version, state: wanted}, wanted: OPPOSITES[wanted]});
        return true;
    };

    // After an undo the book is as the scan before the undone one left it, so that one can be undone, too.
    const updateUndone = ({undoes, book, version}) => {
        for (const scan of scans.filter(other => undoes && other.book?.id === book.id)) {
            if (scan.version === undoes.book.version) {
                scan.version = version;
            }
        }
    };

    const lookUp = async scan => {
        const {status, body} = await request(`${texts.find}?${new URLSearchParams({code: scan.code})}`);
        if (status !== 200) {
            settle(scan, 'refused', texts.failed);
        } else if (!body.book) {
            scan.add = body.add;
            settle(scan, 'refused', body.message);
        } else {
            Object.assign(scan, {book: body.book, note: body.message});
        }
    };

    const change = async scan => {
        const {id, version} = scan.book;
        const values = {book: id, version, state: scan.wanted, ...scan.isSent && {repeated: 'on'}};
        scan.isSent = true;
        const answer = await request(texts.change, values);
        if (answer.status === 200) {
            scan.version = answer.body.version;
            updateUndone(scan);
            settle(scan, 'changed');
        } else if (answer.status === 412 && !scan.undoes && !scan.wasStale) {
            // It is looked up once more.
            Object.assign(scan, {book: null, isSent: false, wasStale: true});
        } else {
            settle(scan, 'refused', {404: texts.gone, 412: texts.changed}[answer.status] || texts.failed);
        }
    };

    const carryOut = async scan => {
        if (scan.undoes && !scan.book && !prepareUndo(scan)) {
            settle(scan, 'refused', texts.nothing);
            return;
        }
        if (!scan.book) {
            await lookUp(scan);
        }
        if (isWaiting(scan) && scan.book.state === scan.wanted) {
            settle(scan, 'unchanged');
        } else if (isWaiting(scan)) {
            await change(scan);
        }
    };

    const send = async () => {
        showWaiting();
        if (isSending) {
            return;
        }
        isSending = true;
        try {
            for (let scan; (scan = scans.find(isWaiting));) {
                await carryOut(scan);
                showTrouble('');
                showWaiting();
            }
        } catch (error) {
            if (!(error instanceof Unsettled)) {
                throw error;
            }
            showTrouble(error.message);
        } finally {
            isSending = false;
        }
    };

    // Input

    const enqueue = members => {
        const scan = {outcome: 'waiting', note: '', ...members};
        scans.push(scan);
        showRow(scan);
        send();
    };

    const readState = () => form.elements.namedItem('state').value;

    const selectState = state => {
        form.elements.namedItem('state').value = state;
        box.focus();
    };

    const isRepeated = code => {
        const name = `${readState()} ${code.toUpperCase()}`;
        const isRecent = Date.now() - recentCodes.get(name) < REPEAT_TIME;
        recentCodes.set(name, Date.now());
        return isRecent;
    };

    const undo = () => {
        const last = scans.findLast(
            scan => !scan.undoes && !scan.isUndone && ['waiting', 'changed'].includes(scan.outcome)
        );
        if (!last) {
            say(texts.nothing);
            return;
        }
        last.isUndone = true;
        enqueue({undoes: last, code: last.code, wanted: OPPOSITES[last.wanted], book: null});
    };

    const isUndoKey = event => event.key.toLowerCase() === 'z' && (event.ctrlKey || event.metaKey) && !event.shiftKey;

    form.addEventListener('submit', event => {
        event.preventDefault();
        const code = box.value.trim();
        box.value = '';
        box.focus();
        if (code && isRepeated(code)) {
            say(texts.repeated);
        } else if (code) {
            enqueue({code, wanted: readState(), book: null});
        }
    });
    document.addEventListener('keydown', event => {
        const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
        if (isPlain && STATE_KEYS[event.key]) {
            event.preventDefault();
            selectState(STATE_KEYS[event.key]);
        } else if (isUndoKey(event) && !box.value) {
            event.preventDefault();
            undo();
        } else if (isPlain && event.key.length === 1 && event.key !== ' ') {
            // A scan that begins while something else has the focus goes to the box, too.
            box.focus();
        }
    });
    for (const radio of form.elements.namedItem('state')) {
        radio.addEventListener('change', () => selectState(radio.value));
    }
    element('undo').addEventListener('click', () => {
        undo();
        box.focus();
    });
    element('again').addEventListener('click', () => {
        send();
        box.focus();
    });
    window.addEventListener('beforeunload', event => {
        if (scans.some(isWaiting)) {
            event.preventDefault();
        }
    });
    for (const name of ['online', 'focus']) {
        window.addEventListener(name, send);
    }

    selectState(readState());
    element('tools').hidden = false;
}
