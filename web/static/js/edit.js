// Dialogs that change znodes. Every write carries the version that the person saw.
import * as api from './api.js';
import {button, debounce, field, h, replace, select} from './dom.js';
import {bytes, join} from './format.js';
import {diffView} from './diff.js';
import {ownSession} from './session.js';
import {formatJson, formatted, isJson, parseJson} from './viewers/json.js';
import {hexLine} from './viewers/binary.js';
import {unpacked} from './viewers/packed.js';
import {decode} from './viewers/text.js';

/** toText writes data in a form that a person can edit: 'text', 'hex' or 'base64'. */
export function toText(data, form) {
  switch (form) {
    case 'hex':
      return Array.from(data, (b, i) => b.toString(16).padStart(2, '0') + (i % 16 === 15 ? '\n' : ' ')).join('').trim();
    case 'base64':
      return api.toBase64(data);
    default:
      return decode(data) ?? '';
  }
}

/** fromText is the inverse of toText. */
export function fromText(text, form) {
  switch (form) {
    case 'hex': {
      const digits = text.replace(/\s/g, '');
      if (!/^([0-9a-fA-F]{2})*$/.test(digits)) {
        throw new Error('Hex needs two digits per byte, 0–9 and a–f. Correct the text, or choose another form.');
      }
      return Uint8Array.from(digits.match(/../g) || [], (pair) => parseInt(pair, 16));
    }
    case 'base64':
      try {
        return api.fromBase64(text.replace(/\s/g, ''));
      } catch (error) {
        throw new Error('This is not base64. Correct the text, or choose another form.');
      }
    default:
      return new TextEncoder().encode(text);
  }
}

// lineEnds returns whether all line ends of data are CR LF, and whether a text area would change them.
function lineEnds(data) {
  const text = decode(data);
  const crlf = text !== null && /\r\n/.test(text) && !/(^|[^\r])\n|\r(?!\n)/.test(text);
  return {crlf, mixed: text !== null && /\r/.test(text) && !crlf};
}

// editor is a text area with a choice of forms, a check of JSON and a button for a file. A text area
// turns CR LF into LF: the editor puts it back if all line ends were CR LF.
function editor(data, {rows = 18} = {}) {
  const original = decode(data);
  let {crlf, mixed} = lineEnds(data); // of what the text area was filled with
  let form = original === null || mixed ? 'hex' : 'text';
  const area = h('textarea', {rows, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', 'aria-label': 'Data', value: toText(data, form), autofocus: true});
  const lint = h('span', {class: 'hint', role: 'status'});
  const wasJson = original !== null && isJson(original);
  const format = button('Format JSON', () => {
    area.value = formatJson(parseJson(area.value));
    check();
  }, {kind: 'quiet'});
  const check = () => {
    const text = area.value;
    const looks = form === 'text' && (wasJson || /^\s*[{[]/.test(text));
    format.hidden = !looks;
    lint.className = 'hint';
    if (!looks) {
      lint.textContent = form === 'text' ? bytes(new TextEncoder().encode(text).length) : '';
      return;
    }
    try {
      parseJson(text);
      lint.textContent = 'Valid JSON';
      lint.classList.add('good');
      format.disabled = false;
    } catch (error) {
      lint.textContent = 'Not valid JSON: ' + error.message;
      lint.classList.add('warn');
      format.disabled = true;
    }
  };
  const later = debounce(150, check);
  let escaped = false;
  const before = area.value;
  area.addEventListener('input', later);
  area.addEventListener('keydown', (e) => {
    // Tab indents; after Escape it moves the focus as usual, so that the keyboard gets out.
    if (e.key === 'Tab' && !e.shiftKey && !escaped && form === 'text') {
      e.preventDefault();
      area.setRangeText(/^\t/m.test(area.value) ? '\t' : '  ', area.selectionStart, area.selectionEnd, 'end');
      later();
    } else if (e.key === 'Escape' && !escaped) {
      e.preventDefault();
      escaped = true;
      lint.textContent = 'Tab moves on; Escape again closes.';
    } else if (e.key !== 'Escape') {
      escaped = false;
    }
  });
  const read = () => fromText(form === 'text' && crlf ? area.value.replace(/\n/g, '\r\n') : area.value, form);
  const forms = select([['text', 'Text'], ['hex', 'Hex'], ['base64', 'Base64']], form, (next) => {
    try {
      const current = read();
      ({crlf, mixed} = lineEnds(current));
      if (next === 'text' && (decode(current) === null || mixed)) {
        throw new Error(mixed ? 'The data mixes kinds of line ends, which a text field would change.' : 'The bytes are not text in UTF-8.');
      }
      form = next;
      area.value = form === 'text' ? toText(current, form).replace(/\r\n/g, '\n') : toText(current, form);
      check();
    } catch (error) {
      forms.value = form;
      lint.textContent = error.message;
      lint.className = 'hint bad';
    }
  }, {'aria-label': 'Form of the data'});
  const file = h('input', {type: 'file', class: 'offscreen', tabindex: '-1', 'aria-label': 'File', onchange: async () => {
    const content = new Uint8Array(await file.files[0].arrayBuffer());
    if (content.length > api.inlineLimit) {
      lint.textContent = 'The file has ' + bytes(content.length) + '; a znode holds at most 1 MiB.';
      lint.className = 'hint bad';
      return;
    }
    ({crlf, mixed} = lineEnds(content));
    form = decode(content) === null || mixed ? 'base64' : 'text';
    forms.value = form;
    area.value = toText(content, form);
    check();
  }});
  check();
  return {
    element: h('div', {class: 'stack editor'}, h('div', {class: 'row'}, forms, format, h('span', {class: 'spring'}), lint,
      button('From a file', () => file.click(), {kind: 'quiet', iconName: 'upload'}), file), area),
    read,
    dirty: () => area.value !== before,
  };
}

/** comparable writes data as lines for a comparison. JSON is formatted, so that white space does not count. */
export function comparable(data) {
  const text = decode(data);
  if (text !== null) {
    return formatted(text);
  }
  const lines = [];
  for (let i = 0; i < data.length; i += 16) {
    lines.push(hexLine(data, i).join('  '));
  }
  return lines.join('\n');
}

/** editData changes the data of the znode. */
export async function editData(ctx, seen) {
  if (!seen.data) {
    ctx.toast('The data of ' + ctx.path + (seen.large ? ' are larger than 1 MiB' : ' could not be read') + ', so they cannot be edited here.', 'bad');
    return null;
  }
  let at = seen.stat;
  let started = seen.data;
  let data = seen.data;
  for (;;) {
    const {inside, pack, label} = await unpacked(data);
    const box = editor(inside);
    const outcome = await ctx.dialog({
      title: 'Edit ' + ctx.path, wide: true, id: 'edit', dirty: box.dirty,
      body: [box.element, h('p', {class: 'hint'}, label && 'This is inside ' + label + ', and is packed again. ', 'Saved only if the znode still has version ' + at.version + '.')],
      actions: [{label: 'Cancel', value: null}, {label: 'Save', kind: 'primary', run: async () => save(ctx.path, await pack(box.read()), at)}],
    });
    if (!outcome) {
      return null;
    }
    if (!outcome.conflict) {
      ctx.toast('Saved version ' + outcome.version, 'good');
      return outcome;
    }
    const choice = await resolve(ctx, started, outcome);
    if (choice === 'mine') {
      const forced = await save(ctx.path, outcome.mine, outcome.theirs.stat).catch((error) => {
        ctx.toast(error.message, 'bad');
        return null;
      });
      if (forced && !forced.conflict) {
        ctx.toast('Saved version ' + forced.version, 'good');
        return forced;
      }
      if (!forced) {
        return {};
      }
      outcome.theirs = forced.theirs;
    }
    if (choice === 'theirs' || choice === null) {
      return {};
    }
    at = outcome.theirs.stat;
    started = outcome.theirs.data;
    data = choice === 'edit-theirs' ? outcome.theirs.data : outcome.mine;
  }
}

/**
 * createdAgain reports whether a znode was deleted and created since its Stat was read. The
 * versions of the new one may be the same, and ZooKeeper's writes name no more than a version.
 */
export async function createdAgain(path, stat) {
  try {
    return (await api.acl(path)).stat.czxid !== stat.czxid;
  } catch (error) {
    if (error.forbidden) {
      return false; // a person may write what may not be read
    }
    throw error;
  }
}

async function save(path, mine, {version, czxid}) {
  try {
    if (!await createdAgain(path, {czxid})) {
      const answer = await api.setData(path, mine, version);
      return {version: answer.stat.version};
    }
  } catch (error) {
    if (!error.conflict) {
      throw error;
    }
  }
  return {conflict: true, mine, theirs: await api.znode(path)};
}

// resolve shows both versions after a conflict and lets the person choose.
async function resolve(ctx, started, {mine, theirs}) {
  const place = h('div');
  const [base, other, own] = await Promise.all([started, theirs.data, mine].map(async (data) => comparable((await unpacked(data)).inside)));
  const views = {
    both: ['Theirs → mine', () => diffView(other, own, 'From their version to mine')],
    theirs: ['What they changed', () => diffView(base, other, 'What changed on the server')],
    mine: ['What I changed', () => diffView(base, own, 'What I changed')],
  };
  const tabs = Object.entries(views).map(([name, [label]]) => button(label, () => show(name), {kind: 'quiet'}));
  const show = (name) => {
    Object.keys(views).forEach((n, i) => tabs[i].setAttribute('aria-pressed', String(n === name)));
    replace(place, views[name][1]());
  };
  show('both');
  return ctx.dialog({
    title: 'Somebody else changed ' + ctx.path, wide: true, id: 'conflict',
    body: [h('p', null, 'The znode is now at version ' + theirs.stat.version + '. Nothing was overwritten. Choose which version stays.'), h('div', {class: 'row'}, tabs), place],
    actions: [{label: 'Keep theirs', value: 'theirs'}, {label: 'Edit theirs', value: 'edit-theirs'}, {label: 'Edit mine', value: 'edit-mine', kind: 'primary'},
      {label: 'Overwrite with mine', value: 'mine', kind: 'danger'}],
  });
}

const permissions = [['c', 'create'], ['d', 'delete'], ['r', 'read'], ['w', 'write'], ['a', 'admin']];
const example = {digest: 'user:hash', ip: '10.0.0.0/8', sasl: 'user', x509: 'CN=name', auth: 'everybody you are'};
const schemes = ['world', 'auth', 'digest', 'ip', 'sasl', 'x509'];

// aclEditor edits the entries in place and returns them with read().
function aclEditor(list) {
  const rows = h('div', {class: 'stack'});
  const add = (entry) => {
    const known = schemes.includes(entry.scheme) ? schemes : [...schemes, entry.scheme];
    const id = h('input', {value: entry.id, placeholder: example[entry.scheme], 'aria-label': 'Id', class: 'mono grow', spellcheck: 'false', autocapitalize: 'off', disabled: entry.scheme === 'auth' || entry.scheme === 'world'});
    const scheme = select(known.map((s) => [s, s]), entry.scheme, (s) => {
      id.value = s === 'world' ? 'anyone' : s === 'auth' ? '' : id.value === 'anyone' ? '' : id.value;
      id.disabled = s === 'world' || s === 'auth';
      digest(s);
      id.placeholder = example[s] || '';
    }, {'aria-label': 'Scheme'});
    const password = h('input', {type: 'password', placeholder: 'or a password', 'aria-label': 'Password, of which the hash becomes the id', autocomplete: 'new-password', onchange: async () => {
      const user = id.value.split(':')[0];
      const hash = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(user + ':' + password.value));
      [id.value, password.value] = [user + ':' + api.toBase64(new Uint8Array(hash)), ''];
    }});
    const digest = (s) => (password.hidden = s !== 'digest' || !crypto.subtle);
    digest(entry.scheme);
    const boxes = permissions.map(([letter, name]) => h('input', {type: 'checkbox', value: letter, checked: entry.perms.includes(letter), 'aria-label': name}));
    const row = h('fieldset', {class: 'acl-row'}, h('legend', {class: 'offscreen'}, 'Entry'), scheme, id, password,
      h('span', {class: 'row'}, permissions.map(([, name], i) => h('label', {class: 'check'}, boxes[i], name))),
      button('', () => row.remove(), {kind: 'quiet', iconName: 'trash', title: 'Remove the entry'}));
    row.read = () => ({scheme: scheme.value, id: id.value.trim(), perms: boxes.filter((b) => b.checked).map((b) => b.value).join('')});
    rows.append(row);
  };
  list.forEach(add);
  return {
    element: h('div', {class: 'stack'}, rows, h('div', null, button('Add an entry', () => add({scheme: 'digest', id: '', perms: 'r'}), {iconName: 'plus'}))),
    read() {
      const entries = Array.from(rows.children, (row) => row.read());
      if (entries.length === 0) {
        throw new Error('An ACL needs at least one entry.');
      }
      return entries;
    },
  };
}

/** masked reports whether the server has put an x in the place of a digest's hash. */
export function masked(entry) {
  return entry.scheme === 'digest' && entry.id.endsWith(':x');
}

/** editACL changes the ACL of the znode. */
export async function editACL(ctx, seen) {
  if (!seen.acl) {
    ctx.toast('You may not read the ACL of ' + ctx.path + ', so you cannot edit it here.', 'bad');
    return null;
  }
  if (seen.acl.acl.some(masked)) {
    ctx.toast('The server hides the hashes of digest users from those who may not change this ACL, so it cannot be edited here.', 'bad');
    return null;
  }
  const box = aclEditor(seen.acl.acl);
  const done = await ctx.dialog({
    title: 'ACL of ' + ctx.path, wide: true, id: 'acl',
    body: [box.element, h('p', {class: 'hint'}, 'Take care not to lock yourself out: without an entry with “admin” only the superuser can change the ACL again.')],
    actions: [{label: 'Cancel', value: null}, {label: 'Save', kind: 'primary', run: async () => {
      const entries = box.read();
      if (!await createdAgain(ctx.path, seen.acl.stat)) {
        try {
          return await api.setACL(ctx.path, entries, seen.acl.stat.aversion);
        } catch (error) {
          if (!error.conflict) {
            throw error;
          }
        }
      }
      throw new Error('Somebody else changed the ACL. Close this window: the page then shows the present one.');
    }}],
  });
  if (done) {
    ctx.toast('Saved the ACL', 'good');
  }
  return done || {};
}

const modes = [['persistent', 'Persistent'], ['container', 'Container: removed after its last child'], ['ttl', 'TTL: removed after a time without changes'],
  ['ephemeral', 'Ephemeral: removed when this page is closed']];

/** createChild asks for a name, a mode and data. */
export async function createChild(ctx) {
  const name = h('input', {class: 'mono', autofocus: true, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', 'aria-describedby': 'new-path'});
  const path = h('span', {class: 'hint mono break', id: 'new-path'});
  const ttl = h('input', {type: 'number', min: 1, value: 3600});
  const ttlField = field('Seconds', ttl);
  const sequential = h('input', {type: 'checkbox'});
  const mode = select(modes, 'persistent', () => draw());
  const box = editor(new Uint8Array(), {rows: 8});
  const draw = () => {
    ttlField.hidden = mode.value !== 'ttl';
    path.textContent = join(ctx.path, name.value) + (sequential.checked ? '0000000042' : '');
    sequential.disabled = mode.value === 'container';
    sequential.checked &&= !sequential.disabled;
  };
  name.addEventListener('input', draw);
  sequential.addEventListener('change', draw);
  draw();
  const answer = await ctx.dialog({
    title: 'New child of ' + ctx.path, id: 'create', dirty: box.dirty,
    body: [h('div', {class: 'stack'}, field('Name', name), path), h('div', {class: 'row'}, field('Mode', mode), ttlField,
      h('label', {class: 'check'}, sequential, 'Append a sequence number')), box.element],
    actions: [{label: 'Cancel', value: null}, {label: 'Create', kind: 'primary', run: async () => {
      if (!name.value && !sequential.checked) {
        throw new Error('Type a name for the znode.');
      }
      if (name.value.includes('/')) {
        throw new Error('A name has no slash. Create the parents first.');
      }
      return api.create(ctx.path, box.read(), {
        name: name.value, mode: mode.value === 'ttl' ? 'persistent' : mode.value,
        sequential: sequential.checked, ttl: mode.value === 'ttl' ? Math.round(1000 * Number(ttl.value)) : null,
        session: mode.value === 'ephemeral' ? await ownSession() : null,
      });
    }}],
  });
  if (!answer) {
    return null;
  }
  ctx.toast('Created ' + answer.path, 'good');
  return {created: answer.path};
}
