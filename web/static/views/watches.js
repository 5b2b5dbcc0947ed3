// Watches: which client watches what on this server.
import {badge, debounce, h} from '../js/dom.js';
import {filterBox, table} from '../js/list.js';
import {client, count, znodeLink} from '../js/format.js';
import {more, page, sessionLink} from './list.js';

const kinds = {data: 'the znode, once', children: 'its children, once', persistent: 'the znode and its children', recursive: 'the whole subtree'};

export default function (ctx) {
  const query = {path: ctx.params.get('path') || '', session: ctx.params.get('session') || '', address: ctx.params.get('address') || ''};
  const input = (name, placeholder) => filterBox(debounce(300, (text) => {
    query[name] = text.trim();
    ctx.setParams({[name]: query[name]});
    view.reload();
  }), {placeholder, value: query[name]});
  const columns = [
    {key: 'path', title: 'Path', cell: (w) => znodeLink(w.path)},
    {key: 'kinds', title: 'Watches', value: (w) => w.kinds.join(' '), cell: (w) => w.kinds.map((k) => [badge(k, k === 'recursive' ? 'accent' : '', kinds[k]), ' '])},
    {key: 'session', title: 'Session', class: 'nowrap', cell: (w) => sessionLink(w.session)},
    {key: 'address', title: 'Client', class: 'nowrap', cell: (w) => [client(w.address), ' ', w.tls && badge('TLS', 'good')]},
  ];
  const view = page({
    title: 'Watches', head: [input('path', 'Path, or /path/* for a subtree'), input('session', 'Session 0x…'), input('address', 'Client address')],
    load: () => ctx.api.get('watches', {path: query.path || null, session: query.session || null, address: query.address || null, limit: 2000}),
    draw: (data, keep) => {
      const shown = keep('watches', () => table({columns, caption: 'Watches on this server', sort: 'path', emptyTitle: 'No watches',
        emptyText: 'Nobody who is connected to this server watches that. Other servers have their own watches.'}));
      shown.set(data.watches);
      return [h('div', {class: 'row'}, badge(count(data.all) + ' watches on ' + count(data.paths) + ' paths', '', 'Without watches of children alone'),
        badge(count(data.watches.length) + ' shown', 'accent'), more(data.truncated)), shown.element];
    },
  });
  return view;
}
