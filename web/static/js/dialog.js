// Dialogs and toasts.
import {button, h, icon} from './dom.js';

/**
 * dialog shows a modal window and resolves to the value of the action taken, or to null after Escape.
 * body: nodes. actions: [{label, kind, value, run}]; run() may be async, may return false to keep the
 * window open, and its result is the value; an error that it throws is shown in the window. The first
 * action of kind 'primary' or 'danger' also runs on Enter in an input. While dirty() is true, the first
 * attempt to leave only warns.
 */
export function dialog({title, body, actions = [{label: 'Close', value: null}], wide = false, id = null, dirty = () => false}) {
  return new Promise((resolve) => {
    const status = h('p', {class: 'dialog-error', role: 'alert', hidden: true});
    let result = null;
    let warned = false;
    const mayLeave = () => {
      if (warned || !dirty()) {
        return true;
      }
      warned = true;
      status.textContent = 'Your changes are not saved. Leave again to discard them.';
      status.hidden = false;
      return false;
    };
    const leave = () => mayLeave() && box.close();
    const act = async (action) => {
      if (!action.run) {
        if (!mayLeave()) {
          return;
        }
        result = action.value === undefined ? null : action.value;
        box.close();
        return;
      }
      status.hidden = true;
      buttons.forEach((b) => b.setAttribute('aria-disabled', 'true'));
      try {
        const value = await action.run(box);
        warned = false;
        if (value !== false) {
          result = value === undefined ? true : value;
          box.close();
        }
      } catch (error) {
        status.textContent = error.message;
        status.hidden = false;
      }
      buttons.forEach((b) => b.removeAttribute('aria-disabled'));
    };
    const main = actions.find((a) => a.kind === 'primary' || a.kind === 'danger');
    const buttons = actions.map((a) => {
      const b = button(a.label, () => b.getAttribute('aria-disabled') || act(a), {kind: a.kind, id: a.id, reason: a.reason});
      return b;
    });
    const form = h('form', {
      method: 'dialog', class: 'dialog-form', onsubmit: (e) => {
        e.preventDefault();
        if (main && !buttons[actions.indexOf(main)].disabled) {
          act(main);
        }
      },
    },
    h('header', {class: 'dialog-head'}, h('h2', {id: 'dialog-title'}, title),
      h('button', {type: 'button', class: 'button quiet', 'aria-label': 'Close', onclick: leave}, icon('close'))),
    h('div', {class: 'dialog-body'}, body), status,
    h('footer', {class: 'dialog-foot'}, buttons),
    // Enter in an input submits a form only if it has a submit button.
    h('button', {type: 'submit', hidden: true, tabindex: '-1', 'aria-hidden': 'true'}));
    const box = h('dialog', {class: 'dialog' + (wide ? ' wide' : ''), id, 'aria-labelledby': 'dialog-title', oncancel: (e) => mayLeave() || e.preventDefault(), onclose: () => {
      box.remove();
      resolve(result);
    }}, form);
    document.body.append(box);
    box.showModal();
    (box.querySelector('[autofocus]') || box.querySelector('.dialog-body :is(input, select, textarea)') || box.querySelector('.dialog-foot .primary'))?.focus();
  });
}

/** confirm asks a question and resolves to true or false. */
export async function confirm(title, text, label = 'OK', kind = 'primary') {
  return await dialog({title, body: h('p', null, text), actions: [{label: 'Cancel', value: false}, {label, kind, value: true}]}) === true;
}

/** toast shows a message at the edge of the window; kind is '', 'good' or 'bad'. */
export function toast(text, kind = '', action = null) {
  const box = h('div', {class: 'toast ' + kind}, h('span', null, text),
    action && button(action.label, () => {
      box.remove();
      action.run();
    }, {kind: 'quiet'}),
    h('button', {type: 'button', class: 'button quiet', 'aria-label': 'Dismiss', onclick: () => box.remove()}, icon('close')));
  const place = document.getElementById('toasts');
  place.append(box);
  while (place.children.length > (innerWidth < 560 ? 1 : 4)) { // on a phone they would cover the page
    place.firstChild.remove();
  }
  setTimeout(() => box.remove(), kind === 'bad' ? 12000 : 5000);
}
