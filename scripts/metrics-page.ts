import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { type Metric, Registry } from 'prom-client';
import app from '../examples/shopping-cart/app.ts';
import { createRefold } from '../src/index.ts';
import { markdownTable } from './generated-page.ts';

/** What the class of a metric keeps. */
interface Registered {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly type: string;
}

/** The page docs/metrics.md: what a gateway registers that has a replica and a read store. */
export async function metricsPage(url: string): Promise<string> {
  const registered: Metric[] = [];
  // A scrape has no labels of what has no values yet.
  const { registerMetric } = Registry.prototype;
  Registry.prototype.registerMetric = function register(metric) {
    registered.push(metric);
    registerMetric.call(this, metric);
  };
  const refold = await createRefold(
    {
      ...app,
      development: false,
      gateway: { ...app.gateway, host: '127.0.0.1', port: 0 },
      database: { ...app.database, url, readUrl: url },
      // It need not respond: a gateway starts without it.
      readStores: { analytics: { url: 'postgres://127.0.0.1:1/refold', maxConnections: 6, maxReadLag: 1000 } },
    },
    { logger: pino({ level: 'silent' }) },
  );
  await refold.stop();
  const own = registered as unknown as readonly Registered[]; // the types of prom-client lack them
  return pageOf(own.filter(({ name }) => name.startsWith('refold_')));
}

function pageOf(metrics: readonly Registered[]): string {
  const alerts = alertsByMetric();
  const rows = metrics.map(({ name, help, labelNames, type }) => ({
    group: groupOf(name),
    cells: [code([name]), type, code(labelNames), cell(help), code(alerts.get(name) ?? [])],
  }));
  const groups = Map.groupBy(
    rows.toSorted((a, b) => (String(a.cells[0]) < String(b.cells[0]) ? -1 : 1)),
    ({ group }) => group,
  );
  const sections = [...groups].map(
    ([group, of]) =>
      `## ${group}\n\n${markdownTable(
        ['metric', 'type', 'labels', 'meaning', 'alerts'],
        of.map(({ cells }) => cells),
      )}`,
  );
  return `<!-- Generated from a running gateway and monitoring/alerts.yaml by \`npm run migrations:dump\`. -->

# Metrics

For operators: every metric of \`/metrics\`, with the rules of [\`monitoring/alerts.yaml\`](../monitoring/alerts.yaml) that use
it. A gateway serves them on its port, a worker on its [health port](operating.md#health).

Metrics of versions, reactors and the log are read from the database at the scrape. So every process reports the same
values, whichever does the work, and they are missing while the database can't be read. The others are of the process that
reports them. A histogram has the series \`_bucket\`, \`_sum\` and \`_count\`; times are in seconds.

[\`monitoring/grafana-dashboard.json\`](../monitoring/grafana-dashboard.json) is a dashboard of them. Beside them are
\`process_*\` and \`nodejs_*\`: memory, CPU time, event loop and garbage collection of the process. The event loop is asked every
50 ms (\`nodejs_eventloop_lag_*\`), so 0.05 s is one without delay.

${sections.toSorted().join('\n\n')}
`;
}

/** The part of Refold that a metric is about. */
function groupOf(name: string): string {
  const [, subject = ''] = /^refold_([a-z]+)/.exec(name) ?? [];
  return groups[subject] ?? 'Versions';
}

const groups: Readonly<Record<string, string>> = {
  append: 'Log and commands',
  appended: 'Log and commands',
  appends: 'Log and commands',
  command: 'Log and commands',
  history: 'Log and commands',
  horizon: 'Log and commands',
  graphql: 'GraphQL',
  shadow: 'GraphQL',
  pool: 'Database',
  read: 'Database',
  replica: 'Database',
  reactor: 'Reactors',
};

function alertsByMetric(): ReadonlyMap<string, readonly string[]> {
  const rules = readFileSync(new URL('../monitoring/alerts.yaml', import.meta.url), 'utf8');
  const found = new Map<string, string[]>();
  for (const [, alert = '', expression = ''] of rules.matchAll(/- alert: (\w+)\n +expr: (.*)$/gm))
    for (const name of new Set(expression.match(/\brefold_\w+/g))) {
      const metric = name.replace(/_(bucket|count|sum)$/, '');
      found.set(metric, [...(found.get(metric) ?? []), alert]);
    }
  return found;
}

function code(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
