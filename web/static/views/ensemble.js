// The ensemble: a table with a row for each fact and a column for each member.
import {badge, h} from '../js/dom.js';
import {bytes, count, duration, when} from '../js/format.js';
import {quorumLost} from '../js/health.js';
import {page} from './list.js';

export default function (ctx) {
  return page({title: 'Ensemble', interval: 3000, load: () => ctx.api.get('ensemble'), draw: (e) => [
    h('div', {class: 'row'}, badge(e.members.length + (e.members.length === 1 ? ' server' : ' servers')),
      e.mode === 'standalone' ? badge('standalone') : e.leader >= 0 ? badge('leader is ' + e.leader, 'good') : badge('no leader known', 'bad'),
      e.mode !== 'standalone' && (e.whole ? lost(e.members) || badge('all members vote', 'good') : badge('a member is missing', 'warn')),
      quorumLost(e) && badge('no quorum', 'bad')),
    e.dataStatus && h('section', {class: 'card warn'}, e.dataStatus),
    facts(e),
  ]});
}

// lost says that members vote of which this server hears nothing.
function lost(members) {
  const n = members.filter((m) => !m.own && m.connected === false).length;
  return n > 0 && badge('no connection to ' + n, 'warn');
}

// facts is the table. A fact that no member tells has no row.
function facts(e) {
  const columns = e.members.map((m) => ({m, a: m.own ? own(e) : m.answers || {}, v: (m.own ? own(e) : m.answers || {}).values || {}, e}));
  const leader = columns.find((c) => c.m.id === e.leader && c.a.version) || columns.find((c) => c.m.own);
  return h('div', {class: 'table-wrap ensemble'}, h('table', null, h('caption', {class: 'offscreen'}, 'Facts about each member'),
    h('thead', null, h('tr', null, h('td'), columns.map(({m}) => h('th', {scope: 'col'}, 'Server ' + m.id, ' ', m.own && badge('this server', 'accent'))))),
    groups.map(([title, rows]) => {
      const told = rows.map((row) => [row, columns.map((c) => row[1](c))]).filter(([, cells]) => cells.some((cell) => known(cell)));
      return told.length > 0 && h('tbody', null, h('tr', {class: 'group'}, h('th', {scope: 'rowgroup', colspan: columns.length + 1}, title)),
        told.map(([[name, , differs], cells]) => brief(h('tr', null, h('th', {scope: 'row'}, name),
          cells.map((cell, i) => h('td', {'data-label': 'Server ' + columns[i].m.id, class: known(cell) ? null : 'none'}, known(cell) ? cell : h('span', {class: 'dim'}, '–'),
            known(cell) && differs?.(columns[i], leader) && [' ', badge('differs', 'warn', 'Not as of server ' + leader.m.id)]))))));
    })));
}

// brief marks a row that a narrow window shows in a line: one member tells it, or all say the same.
function brief(row) {
  const [, ...cells] = row.cells;
  const same = cells.every((cell) => cell.textContent === cells[0].textContent);
  row.className = same ? 'brief same' : cells.filter((cell) => cell.className !== 'none').length === 1 ? 'brief' : '';
  return row;
}

function known(cell) {
  return cell !== undefined && cell !== null && cell !== '' && cell !== false;
}

// own is what this server knows of itself, in the form of the answers of another member.
function own(e) {
  return {mode: e.mode, version: e.version.split(',')[0], zxid: e.zxid, values: {...e.values, znode_count: e.znodes, approximate_data_size: e.dataBytes,
    datadir_size: e.dataDirBytes, logdir_size: e.logDirBytes,
    p99_gozkd_log_sync_duration_seconds: e.values.fsynctime?.count ? e.values.fsynctime.p99 / 1000 : undefined}};
}

const mono = (text) => text && h('span', {class: 'mono'}, text);

/** value makes the cell of a value of mntr, if the member tells it. */
const value = (name, show) => ({v}) => (v[name] === undefined ? null : show(v[name], v));

const unlike = (get) => (c, leader) => get(c) !== get(leader);

// Members that have applied the same entry must have the same data.
const unlikeAtSameEntry = (name) => ({v}, leader) => v.gozkd_applied_index !== undefined && v.gozkd_applied_index === leader.v.gozkd_applied_index && v[name] !== leader.v[name];

// The facts: name, cell of a member, and whether a member that tells it differs from the leader.
const groups = [
  ['Membership', [
    ['Role', ({m}) => [badge(m.role, m.role === 'leader' ? 'good' : ''), ' ', !m.own && m.connected === false && badge('no connection', 'bad')]],
    ['Reports as', ({a}) => a.mode, ({m, a}) => (a.mode === 'leader') !== (m.role === 'leader')],
    ['For clients', ({m}) => mono(m.client)],
    ['For members', ({m}) => mono(m.peer)],
    ['Link', ({m}) => (m.linkTo || m.linkFrom) && (m.linkTo || 'none') + ' out, ' + (m.linkFrom || 'none') + ' in'],
    ['In sync', ({m}) => m.inStep !== undefined && badge(m.inStep ? 'yes' : 'no', m.inStep ? 'good' : 'warn')],
    ['Lag', ({m, e}) => (m.lagEntries !== undefined ? lag(m.lagEntries) : !m.own && m.role !== 'leader' && e.leader >= 0 && h('span', {class: 'dim'}, 'server ' + e.leader + ' knows'))],
    ['Unknown', ({a}) => a.unknown && h('span', {class: 'dim'}, 'the rest: ' + a.unknown)],
  ]],
  ['State', [
    ['Version', ({a}) => a.version, unlike(({a}) => a.version)],
    ['Feature level', value('gozkd_feature_level', (n, v) => n + ' of ' + v.gozkd_feature_level_max), unlike(({v}) => v.gozkd_feature_level + ' ' + v.gozkd_feature_level_max)],
    ['Zxid', ({a}) => mono(a.zxid)],
    ['Applied', value('gozkd_applied_index', count)],
    ['Term', value('gozkd_term', count), unlike(({v}) => v.gozkd_term)],
    ['Znodes', value('znode_count', count), unlikeAtSameEntry('znode_count')],
    ['Data', value('approximate_data_size', bytes), unlikeAtSameEntry('approximate_data_size')],
    ['Digest', value('digest_mismatches_count', (n) => badge(n ? count(n) + ' differed' : 'agrees', n ? 'bad' : 'good', 'Members compare digests at the same entry. A member that differs stops serving.'))],
    ['Digest value', ({m, e}) => m.own && mono(e.digest)],
    ['Uptime', ({m, e}) => m.own && duration(e.uptimeMs)],
  ]],
  ['Disk and memory', [
    ['In memory', value('gozkd_data_weight_bytes', (n, v) => bytes(n) + (v.gozkd_data_limit_bytes ? ' of ' + bytes(v.gozkd_data_limit_bytes) : ''))],
    ['Data directory', value('datadir_size', bytes)],
    ['Last checkpoint', ({m, e}) => m.own && (e.lastSnapshot ? when(e.lastSnapshot) : 'none yet')],
    ['Reverted', ({v}) => v.gozkd_checkpoint_reverted > 0 && badge('the newest checkpoint was damaged at the start', 'bad')],
    ['Log directory', value('logdir_size', bytes)],
    ['Log sync p99', value('p99_gozkd_log_sync_duration_seconds', (s) => duration(1000 * s))],
    ['Log sync', ({v}) => v.fsynctime?.count > 0 && 'p50 ' + duration(v.fsynctime.p50) + ', max ' + duration(v.fsynctime.max)],
    ['Waits for disk', ({v}) => v.gozkd_log_pending_seconds > 0.1 && badge(duration(1000 * v.gozkd_log_pending_seconds), 'warn')],
    ['Stalls', ({v}) => v.gozkd_log_stalls_total > 0 && badge(count(v.gozkd_log_stalls_total), 'warn')],
    ['Open files', value('open_file_descriptor_count', (n, v) => count(n) + ' of ' + count(v.max_file_descriptor_count))],
  ]],
  ['Certificates and archive', [
    ['Certificate', ({m, v}) => (v.gozkd_tls_certificate_expires_seconds ? ends(v.gozkd_tls_certificate_expires_seconds) : m.own && 'none: no TLS')],
    ['Archive', ({m, v}) => (v.gozkd_archive_lag_seconds !== undefined || v.gozkd_archive_shipper !== undefined ? archive(v) : m.own && 'not configured')],
    ['Verified', ({m, v}) => (v.gozkd_archive_verified_seconds ? [when(1000 * v.gozkd_archive_verified_seconds), ' ', v.gozkd_archive_verify_failed > 0 && badge('failed', 'bad')]
      : m.own && v.gozkd_archive_lag_seconds !== undefined && badge('never: gozkd verify --record', 'warn'))],
    ['Errors', ({v}) => v.gozkd_archive_errors_total > 0 && badge(count(v.gozkd_archive_errors_total), 'warn')],
    ['Gaps', ({v}) => v.gozkd_archive_gaps_total > 0 && badge(count(v.gozkd_archive_gaps_total), 'bad')],
  ]],
];

function lag(n) {
  return [count(n) + ' entries', h('div', {class: 'bar' + (n > 1000 ? ' bad' : n > 50 ? ' warn' : '')}, h('div', {style: {width: Math.min(100, 100 * Math.log10(1 + n) / 5) + '%'}}))];
}

function archive(v) {
  const n = v.gozkd_archive_lag_seconds;
  return [n !== undefined && badge(duration(1000 * n) + ' behind', n > 60 ? 'warn' : 'good'), v.gozkd_archive_shipper ? ' written by it' : ' stands by'];
}

// ends shows until when a certificate is valid. Another member may say any number.
function ends(seconds) {
  const days = (1000 * seconds - Date.now()) / 86400000;
  if (Math.abs(days) > 1e7) {
    return badge('ends at ' + seconds + ' s after 1970');
  }
  return badge('ends ' + new Date(1000 * seconds).toISOString().slice(0, 10), days < 7 ? 'bad' : days < 30 ? 'warn' : 'good');
}
