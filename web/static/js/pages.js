// The children of a znode, page by page. The tree and the table of children share it.
import * as api from './api.js';

export const pageSize = 200;
export const bigPage = 1000; // when a person has scrolled far beyond what is loaded

/** Pages holds the children that were read so far, ordered by name. */
export class Pages {
  constructor(path, prefix = '') {
    this.path = path;
    this.prefix = prefix;
    this.items = []; // {name, stat}
    this.total = 0; // also of those that are not read yet; of a prefix: of those that are
    this.next = undefined; // where the next page begins; null after the last one
    this.stat = null;
    this.reading = null;
  }

  get complete() {
    return this.next === null;
  }

  /** more reads the next page. missing says how many rows are wanted beyond the last one. */
  more(missing = 0) {
    if (this.complete) {
      return Promise.resolve();
    }
    this.reading ||= this.#read(this.next, missing > 2 * pageSize ? bigPage : pageSize).then((page) => {
      this.items = this.items.concat(page.children.map(slim));
      this.#took(page);
    }).finally(() => {
      this.reading = null;
    });
    return this.reading;
  }

  /** reload reads again as many children as there are, at most a big page; returns names that are new. */
  async reload() {
    await this.reading;
    const page = await this.#read(undefined, Math.min(Math.max(pageSize, this.items.length), bigPage));
    const had = new Set(this.items.map((item) => item.name));
    const added = page.children.filter((c) => !had.has(c.name)).map((c) => c.name);
    this.items = page.children.map(slim);
    this.#took(page);
    return added;
  }

  #read(after, limit) {
    return api.children(this.path, {after, limit, prefix: this.prefix || null});
  }

  #took(page) {
    this.next = page.next ?? null;
    this.stat = page.stat;
    this.total = this.complete || this.prefix ? this.items.length : Math.max(page.stat.numChildren, this.items.length + 1);
  }
}

// slim keeps of a Stat what lists show: a parent may have 100,000 children.
function slim({name, stat}) {
  if (!stat) {
    return {name};
  }
  const {czxid, mtime, version, dataLength, numChildren, ephemeralOwner, kind, ttlMs} = stat;
  return {name, stat: {czxid, mtime, version, dataLength, numChildren, ephemeralOwner: ephemeralOwner === '0x0' ? '' : ephemeralOwner, kind, ttlMs}};
}
