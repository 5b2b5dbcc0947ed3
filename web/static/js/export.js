// Exports children that a person has selected, one after the other.
import * as api from './api.js';
import {button, download, h, problem, replace} from './dom.js';
import {base, count, join} from './format.js';

/**
 * exportSelected saves children of a znode, with everything below them, in the format of an export of the
 * znode. progress shows how many were read, and a button that stops it.
 */
export async function exportSelected(path, names, progress) {
  const stop = new AbortController();
  const lines = [];
  let head = null;
  let gone = 0;
  try {
    for (const [i, name] of names.entries()) {
      replace(progress, h('span', null, count(i) + ' of ' + count(names.length) + ' exported …'), button('Stop', () => stop.abort(), {kind: 'quiet'}));
      try {
        const response = await api.request('GET', 'ui/api/export', {query: {root: join(path, name)}, signal: stop.signal});
        const [first, ...records] = (await response.text()).trimEnd().split('\n').map((line) => JSON.parse(line));
        if (!records.pop()?.end) {
          throw new Error('The server ended its answer too early.');
        }
        head ||= {...first, root: path};
        records.forEach((r) => lines.push({...r, path: '/' + name + (r.path === '/' ? '' : r.path)}));
      } catch (error) {
        if (!error.missing) {
          throw error;
        }
        gone++;
      }
    }
    if (head) {
      download(base(path).replace('/', 'znodes') + '.jsonl', [head, ...lines, {end: true, znodes: lines.length}].map((line) => JSON.stringify(line) + '\n').join(''));
    }
    replace(progress, count(lines.length) + (lines.length === 1 ? ' znode' : ' znodes') + ' exported' + (gone ? ', ' + count(gone) + ' no longer exist' : ''));
  } catch (error) {
    replace(progress, error.name === 'AbortError' ? 'Stopped: nothing was exported.' : problem(error, () => exportSelected(path, names, progress)));
  }
}
