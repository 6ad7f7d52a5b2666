/**
 * `npm run bench:on-paper -- figures.json`: what 100,000 events a second and 1,000,000 subscribers would need, by the figures of a run of the
 * benchmarks. See docs/scaling.md.
 */
import { readFileSync } from 'node:fs';
import type { ReportLine } from './report.ts';

const [, , file] = process.argv;
if (file === undefined) {
  console.error('usage: npm run bench:on-paper -- FILE, where FILE is the --json of a run of the benchmarks');
  process.exit(1);
}
const lines = JSON.parse(readFileSync(file, 'utf8')) as readonly ReportLine[]; // what --json writes
const missing: string[] = [];

function figure(scenario: string, of: 'refold' | 'limit' = 'refold'): number {
  const found = lines.find((line) => line.scenario === scenario)?.[of];
  if (found == null) missing.push(scenario);
  return found ?? Number.NaN;
}

/** The measure of the run with the most subscribers. */
function ofMostSubscribers(name: string): readonly [count: number, figure: number] {
  const counts = lines.map(({ scenario }) => (scenario.startsWith(name) ? Number(scenario.slice(name.length)) : 0));
  const most = Math.max(...counts);
  return [most, figure(`${name}${most}`)];
}

const eventsPerSecond = 100_000;
const subscribers = 1_000_000;
const whole = (value: number) => Math.ceil(value).toLocaleString('en');
const rows: (readonly [what: string, measured: string, needed: string])[] = [];

const [notifying, silent] = [figure('commits-notify'), figure('commits-notify', 'limit')];
const joined = figure('commits-joined');
rows.push(
  ['commits that notify, one server', `${whole(notifying)}/s, ${(notifying / silent).toFixed(2)} × without NOTIFY`, ''],
  [
    'events of a commit',
    `${joined.toFixed(1)} with 128 callers in one process`,
    `${(eventsPerSecond / notifying).toFixed(1)} for all commits to notify one after the other`,
  ],
  [
    'WAL of the log',
    `${whole(figure('commits-event-wal'))} bytes of an event`,
    `${whole((eventsPerSecond * figure('commits-event-wal')) / 1e6)} MB/s`,
  ],
);
const [apart, together] = [figure('read-stores-log-processor'), figure('read-stores-log-processor', 'limit')];
const [walApart, walTogether] = [figure('read-stores-log-wal'), figure('read-stores-log-wal', 'limit')];
rows.push(
  [
    'cores of the log, read models elsewhere',
    `${whole(apart)} µs of an event`,
    `${whole((eventsPerSecond * apart) / 1e6)} cores`,
  ],
  [
    'cores of one server with three read models',
    `${whole(together)} µs of an event`,
    `${whole((eventsPerSecond * together) / 1e6)} cores`,
  ],
  [
    'WAL of the log, read models elsewhere',
    `${whole(walApart)} bytes of an event`,
    `${whole((eventsPerSecond * walApart) / 1e6)} MB/s`,
  ],
  [
    'WAL of one server with three read models',
    `${whole(walTogether)} bytes of an event`,
    `${whole((eventsPerSecond * walTogether) / 1e6)} MB/s`,
  ],
);
const [most, rate] = ofMostSubscribers('fan-out-sse-to-');
const [, memory] = ofMostSubscribers('memory-of-a-subscriber-sse-');
const gateways = subscribers / most;
rows.push(
  [`gateways with ${whole(most)} subscribers each`, '', whole(gateways)],
  ['memory of their subscribers', `${memory.toFixed(1)} KB each`, `${whole((subscribers * memory) / 1e6)} GB in all`],
  [
    'one change for all of them',
    `${whole(rate)} subscribers a second and gateway`,
    `${(most / rate).toFixed(2)} s if each gateway has a core, ${whole(subscribers / rate)} s on one`,
  ],
);
const connections = lines.find(({ scenario }) => /^many-processes-\d+-connections$/.test(scenario))?.refold;
if (connections == null) missing.push('many-processes-…-connections');
else
  rows.push([
    'connections',
    `${connections.toFixed(1)} of each process at rest`,
    `${whole(gateways * connections)} for the gateways`,
  ]);

if (missing.length > 0) {
  console.error(`${file} lacks ${missing.join(', ')}. Run the benchmarks with --only for each.`);
  process.exit(1);
}
console.log(
  `| what | measured | ${eventsPerSecond.toLocaleString('en')} events/s, ${subscribers.toLocaleString('en')} subscribers |`,
);
console.log('| --- | --- | --- |');
for (const row of rows) console.log(`| ${row.join(' | ')} |`);
