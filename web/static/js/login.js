// Logging in: the page for callers without a role, and the dialog for everybody else.
import * as api from './api.js';
import {dialog} from './dialog.js';
import {field, h, select} from './dom.js';

function inputs() {
  const scheme = select([['digest', 'digest'], ['sasl', 'SASL']], 'digest', null, {name: 'scheme'});
  const user = h('input', {name: 'user', autocomplete: 'username', required: true, autocapitalize: 'off', spellcheck: 'false'});
  const password = h('input', {name: 'password', type: 'password', autocomplete: 'current-password'});
  return {
    rows: [field('User', user), field('Password', password), field('Scheme', scheme)],
    send: () => api.post('login', {scheme: scheme.value, user: user.value, password: password.value}, null, {quiet: true}),
  };
}

/** loginDialog asks for an identity and returns what the server made of it, or null. */
export function loginDialog() {
  const form = inputs();
  return dialog({
    title: 'Log in', id: 'login',
    body: [form.rows, h('p', {class: 'hint'}, 'The superuser and the users that gozkd.web.roles lists have a role.')],
    actions: [{label: 'Cancel', value: null}, {label: 'Log in', kind: 'primary', run: form.send}],
  });
}

/** loginForm is the page of a caller without a role. */
export function loginForm(identity, done) {
  const form = inputs();
  const status = h('p', {class: 'dialog-error', role: 'alert', hidden: true});
  const send = async (event) => {
    event.preventDefault();
    status.hidden = true;
    try {
      await done(await form.send());
    } catch (error) {
      status.textContent = error.message;
      status.hidden = false;
    }
  };
  return h('div', {class: 'page center'}, h('form', {class: 'card login', onsubmit: send},
    h('h1', null, 'Log in'), identity.reason && h('p', {class: 'dim'}, identity.reason), form.rows, status,
    h('button', {type: 'submit', class: 'button primary'}, 'Log in'),
    h('p', {class: 'hint'}, 'Users with a role are listed in gozkd.web.roles of the server’s configuration.')));
}
