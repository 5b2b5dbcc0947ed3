// The ensemble: its members as this server sees them, and this server.
import {badge, h} from '../js/dom.js';
import {bytes, count, duration, time} from '../js/format.js';
import {quorumLost} from '../js/health.js';
import {page} from './list.js';

export default function (ctx) {
  return page({title: 'Ensemble', interval: 3000, load: () => ctx.api.get('ensemble'), draw: (e) => [
    h('div', {class: 'row'}, badge(e.members.length + (e.members.length === 1 ? ' server' : ' servers')),
      e.mode === 'standalone' ? badge('standalone') : e.leader >= 0 ? badge('leader is ' + e.leader, 'good') : badge('no leader known', 'bad'),
      e.mode !== 'standalone' && (e.whole ? lost(e.members) || badge('all members vote', 'good') : badge('a member is missing', 'warn')),
      quorumLost(e) && badge('no quorum', 'bad')),
    e.dataStatus && h('section', {class: 'card warn'}, e.dataStatus),
    h('div', {class: 'grid'}, e.members.map((m) => memberCard(m, e))),
    h('div', {class: 'grid'}, stateCard(e), diskCard(e), safetyCard(e)),
  ]});
}

// lost says that members vote of which this server hears nothing.
function lost(members) {
  const n = members.filter((m) => !m.own && m.connected === false).length;
  return n > 0 && badge('no connection to ' + n, 'warn');
}

function facts(rows) {
  return h('dl', {class: 'facts'}, rows.filter((r) => r && r[1] !== undefined && r[1] !== null && r[1] !== '').map(([name, value]) => [h('dt', null, name), h('dd', null, value)]));
}

function memberCard(m, e) {
  const lag = m.lagEntries;
  const good = m.own || m.connected !== false;
  return h('section', {class: 'card'},
    h('header', null, h('h2', null, 'Server ' + m.id), m.own && badge('this server', 'accent'), badge(m.role, m.role === 'leader' ? 'good' : ''), !good && badge('no connection', 'bad')),
    facts([['Clients', h('span', {class: 'mono'}, m.client || '–')], ['Members', m.peer && h('span', {class: 'mono'}, m.peer)],
      ['Link', m.linkTo || m.linkFrom ? (m.linkTo || 'none') + ' out, ' + (m.linkFrom || 'none') + ' in' : null],
      ['In step', m.inStep === undefined ? null : badge(m.inStep ? 'yes' : 'no', m.inStep ? 'good' : 'warn')],
      ['Lag', lag !== undefined ? [count(lag) + ' entries', h('div', {class: 'bar' + (lag > 1000 ? ' bad' : lag > 50 ? ' warn' : '')},
        h('div', {style: {width: Math.min(100, 100 * Math.log10(1 + lag) / 5) + '%'}}))]
        : m.own || m.role === 'leader' || e.leader < 0 ? null : h('span', {class: 'dim'}, 'the leader, server ' + e.leader + ', knows')],
    ...(m.own ? [] : answered(m.answers))]));
}

// answered are the facts of another member, from its answers to four-letter words.
function answered(a) {
  if (!a) {
    return [];
  }
  const v = a.values || {};
  const known = (name, show) => (v[name] === undefined ? null : show(v[name]));
  return [['Says it is', a.mode], ['Version', a.version], ['Zxid', a.zxid && h('span', {class: 'mono'}, a.zxid)],
    ['Applied', known('gozkd_applied_index', count)], ['Znodes', known('znode_count', count)], ['Data', known('approximate_data_size', bytes)],
    ['Checkpoint', known('datadir_size', bytes)], ['Log', known('logdir_size', bytes)],
    ['Sync p99', known('p99_gozkd_log_sync_duration_seconds', (s) => duration(1000 * s))],
    ['Digest', known('digest_mismatches_count', (n) => badge(n ? count(n) + ' differed' : 'agrees', n ? 'bad' : 'good'))],
    ['Feature level', known('gozkd_feature_level', (n) => n + ' of ' + v.gozkd_feature_level_max)],
    ['Certificate', known('gozkd_tls_certificate_expires_seconds', ends)],
    ['Archive', known('gozkd_archive_shipper', (n) => (n ? 'written by it' : 'stands by'))],
    ['Unknown', a.unknown && h('span', {class: 'dim'}, 'the rest: ' + a.unknown)]];
}

// ends shows until when a certificate is valid. Another member may say any number.
function ends(seconds) {
  const days = (1000 * seconds - Date.now()) / 86400000;
  if (Math.abs(days) > 1e7) {
    return badge('ends at ' + seconds + ' s after 1970');
  }
  return badge('ends ' + new Date(1000 * seconds).toISOString().slice(0, 10), days < 7 ? 'bad' : days < 30 ? 'warn' : 'good');
}

function stateCard(e) {
  const v = e.values;
  return h('section', {class: 'card'}, h('header', null, h('h2', null, 'State of this server')), facts([
    ['Version', e.version.split(',')[0]], ['Up', duration(e.uptimeMs)], ['Zxid', h('span', {class: 'mono'}, e.zxid)],
    ['Digest', h('span', {class: 'mono', title: 'Members compare digests at the same entry. A member that differs stops serving.'}, e.digest)],
    ['Digests', v.digest_mismatches_count === undefined ? null : badge(v.digest_mismatches_count ? count(v.digest_mismatches_count) + ' differed' : 'agree', v.digest_mismatches_count ? 'bad' : 'good')],
    ['Znodes', count(e.znodes)], ['Term, entry', v.gozkd_term === undefined ? null : count(v.gozkd_term) + ', ' + count(v.gozkd_applied_index)],
    ['Feature level', v.gozkd_feature_level === undefined ? null : v.gozkd_feature_level + ' of ' + v.gozkd_feature_level_max],
    ['Files', v.open_file_descriptor_count === undefined ? null : count(v.open_file_descriptor_count) + ' of ' + count(v.max_file_descriptor_count)],
  ]));
}

function diskCard(e) {
  const sync = e.values.fsynctime;
  return h('section', {class: 'card'}, h('header', null, h('h2', null, 'Disk and memory')), facts([
    ['Data', bytes(e.dataBytes)],
    ['In memory', bytes(e.values.gozkd_data_weight_bytes) + (e.values.gozkd_data_limit_bytes ? ' of ' + bytes(e.values.gozkd_data_limit_bytes) : '')],
    ['Checkpoint', bytes(e.checkpointBytes)], ['Log', bytes(e.logBytes)],
    ['Written', e.lastSnapshot ? time(e.lastSnapshot) : 'no checkpoint yet'],
    ['Sync', sync?.count ? 'p50 ' + duration(sync.p50) + ', p99 ' + duration(sync.p99) + ', max ' + duration(sync.max) : null],
    ['Waits for disk', e.values.gozkd_log_pending_seconds > 0.1 ? badge(duration(1000 * e.values.gozkd_log_pending_seconds), 'warn') : null],
    ['Stalls', e.values.gozkd_log_stalls_total ? badge(count(e.values.gozkd_log_stalls_total), 'warn') : null],
    ['Checkpoint', e.values.gozkd_checkpoint_reverted ? badge('the newest was damaged at the start', 'bad') : null],
  ]));
}

function safetyCard(e) {
  const v = e.values;
  const expires = v.gozkd_tls_certificate_expires_seconds;
  return h('section', {class: 'card'}, h('header', null, h('h2', null, 'Certificates and archive')), facts([
    ['Certificate', expires ? ends(expires) : 'none: no TLS'],
    ['Archive', v.gozkd_archive_lag_seconds === undefined ? 'not configured' : [badge(duration(1000 * v.gozkd_archive_lag_seconds) + ' behind', v.gozkd_archive_lag_seconds > 60 ? 'warn' : 'good'), v.gozkd_archive_shipper ? ' written by this server' : '']],
    ['Verified', v.gozkd_archive_verified_seconds ? [time(1000 * v.gozkd_archive_verified_seconds), v.gozkd_archive_verify_failed ? badge('failed', 'bad') : null] : v.gozkd_archive_lag_seconds === undefined ? null : badge('never: gozkd verify --record', 'warn')],
    ['Errors', v.gozkd_archive_errors_total ? badge(count(v.gozkd_archive_errors_total), 'warn') : null],
    ['Gaps', v.gozkd_archive_gaps_total ? badge(count(v.gozkd_archive_gaps_total), 'bad') : null],
  ]));
}
