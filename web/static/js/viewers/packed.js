// Data inside of data: base64, gzip, zlib, snappy and zstd. What is inside gets a viewer of its own.
import * as api from '../api.js';
import {decode} from './text.js';

/** maxUnpacked bounds what a few bytes of input may become. */
export const maxUnpacked = 4 << 20;

function begins(data, ...magic) {
  return magic.every((byte, i) => data[i] === byte);
}

async function pipe(data, transform) {
  const reader = new Blob([data]).stream().pipeThrough(transform).getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) {
      break;
    }
    length += value.length;
    if (length > maxUnpacked) {
      reader.cancel();
      throw new Error('More than 4 MiB inside: download the znode and unpack it with gzip.');
    }
    parts.push(value);
  }
  return concat(parts);
}

function concat(parts) {
  const out = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** isZlib reports whether data begins with a header of zlib that no text has. */
export function isZlib(data) {
  return data.length > 6 && (data[0] & 15) === 8 && data[0] >> 4 <= 7 && (256 * data[0] + data[1]) % 31 === 0;
}

export const gzip = {
  id: 'gzip', label: 'gzip', score: (input) => (begins(input.data, 0x1f, 0x8b, 8) ? 1 : 0),
  unpack: (data) => pipe(data, new DecompressionStream('gzip')), pack: (data) => pipe(data, new CompressionStream('gzip')),
};

export const zlib = {
  id: 'zlib', label: 'zlib', score: (input) => (input.text === null && isZlib(input.data) ? 0.9 : 0),
  unpack: (data) => pipe(data, new DecompressionStream('deflate')), pack: (data) => pipe(data, new CompressionStream('deflate')),
};

/** unpacked returns what is inside of data that can be packed again: {inside, pack, label}; pack of others changes nothing. */
export async function unpacked(data) {
  const viewer = [gzip, zlib].find((v) => v.score({data, text: decode(data)}) > 0);
  try {
    return viewer ? {inside: await viewer.unpack(data), pack: viewer.pack, label: viewer.label} : {inside: data, pack: async (same) => same, label: ''};
  } catch (error) {
    return {inside: data, pack: async (same) => same, label: ''}; // damaged: shown as it is
  }
}

export const zstd = {
  id: 'zstd', label: 'zstd', score: (input) => (begins(input.data, 0x28, 0xb5, 0x2f, 0xfd) ? 1 : 0),
  async unpack(data) {
    // Browsers do not know zstd: the server unpacks.
    const response = await api.request('POST', 'ui/api/decode', {query: {as: 'zstd'}, body: data, headers: {'Content-Type': 'application/octet-stream'}});
    return new Uint8Array(await response.arrayBuffer());
  },
};

/** unsnappy unpacks one block of snappy's raw format. */
export function unsnappy(data) {
  let at = 0;
  let size = 0;
  for (let shift = 0; ; shift += 7) {
    if (at >= data.length || shift > 28) {
      throw new Error('The length of the snappy block is damaged.');
    }
    size += (data[at] & 127) * 2 ** shift;
    if (data[at++] < 128) {
      break;
    }
  }
  if (size > maxUnpacked) {
    throw new Error('More than 4 MiB inside the snappy block: download the znode to unpack it.');
  }
  const out = new Uint8Array(size);
  let end = 0;
  const little = (n) => {
    let value = 0;
    for (let i = 0; i < n; i++) {
      value += data[at++] * 2 ** (8 * i);
    }
    return value;
  };
  while (at < data.length) {
    const tag = data[at++];
    let length = (tag >> 2) + 1;
    if ((tag & 3) === 0) {
      length = length > 60 ? little(length - 60) + 1 : length;
      if (at + length > data.length || end + length > size) {
        throw new Error('The snappy block is damaged.');
      }
      out.set(data.subarray(at, at + length), end);
      at += length;
      end += length;
      continue;
    }
    let offset;
    if ((tag & 3) === 1) {
      length = ((tag >> 2) & 7) + 4;
      offset = ((tag >> 5) << 8) + data[at++];
    } else {
      offset = little((tag & 3) === 2 ? 2 : 4);
    }
    if (!(offset > 0 && offset <= end && end + length <= size)) {
      throw new Error('The snappy block is damaged.');
    }
    for (; length > 0; length--, end++) {
      out[end] = out[end - offset];
    }
  }
  if (end !== size) {
    throw new Error('The snappy block ends early.');
  }
  return out;
}

// Frames: a type, a length of 3 bytes, and for data 4 bytes of checksum.
function snappyFrames(data) {
  const parts = [];
  for (let at = 0; at + 4 <= data.length;) {
    const length = data[at + 1] + 256 * data[at + 2] + 65536 * data[at + 3];
    const body = data.subarray(at + 8, at + 4 + length);
    if (data[at] === 0) {
      parts.push(unsnappy(body));
    } else if (data[at] === 1) {
      parts.push(body);
    }
    at += 4 + length;
    if (parts.reduce((n, p) => n + p.length, 0) > maxUnpacked) {
      throw new Error('More than 4 MiB inside: download the znode to unpack it.');
    }
  }
  return concat(parts);
}

// The header of snappy-java, then blocks after their lengths.
function snappyJava(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const parts = [];
  for (let at = 16; at + 4 <= data.length;) {
    const length = view.getUint32(at);
    parts.push(unsnappy(data.subarray(at + 4, at + 4 + length)));
    at += 4 + length;
    if (parts.reduce((n, p) => n + p.length, 0) > maxUnpacked) {
      throw new Error('More than 4 MiB inside: download the znode to unpack it.');
    }
  }
  return concat(parts);
}

const frameMagic = [0xff, 6, 0, 0, 0x73, 0x4e, 0x61, 0x50, 0x70, 0x59];
const javaMagic = [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0];

function rawSnappy(data) {
  try {
    return data.length > 4 && data.length < 262144 && unsnappy(data).length > 0;
  } catch (error) {
    return false;
  }
}

export const snappy = {
  id: 'snappy', label: 'snappy',
  score: (input) => (begins(input.data, ...frameMagic) || begins(input.data, ...javaMagic) ? 1 : input.text === null && rawSnappy(input.data) ? 0.6 : 0),
  unpack: async (data) => (begins(data, ...frameMagic) ? snappyFrames(data) : begins(data, ...javaMagic) ? snappyJava(data) : unsnappy(data)),
};

export const base64 = {
  id: 'base64', label: 'base64',
  score(input) {
    const text = input.text?.trim();
    if (!text || text.length < 16 || text.length % 4 !== 0 || !/^[A-Za-z0-9+/\r\n]+={0,2}$/.test(text)) {
      return 0;
    }
    const inside = api.fromBase64(text.replace(/\s/g, ''));
    return decode(inside) !== null || begins(inside, 0x1f, 0x8b) || begins(inside, 0x28, 0xb5, 0x2f, 0xfd) ? 0.6 : 0.1;
  },
  unpack: async (data) => api.fromBase64(decode(data).replace(/\s/g, '')),
};
