import { useEffect, useState } from 'preact/hooks';
import { LagTrendsDocument, type OverviewPartsFragment, type VersionLineFragment } from '../gql/graphql.ts';
import { Progress, Spark } from '../parts/chart.tsx';
import { Figures, Section } from '../parts/figures.tsx';
import { Filter } from '../parts/form.tsx';
import { count, duration, number } from '../parts/format.tsx';
import { HealthBadge, healthOrder, healths } from '../parts/marks.tsx';
import { storeText } from '../parts/stores.tsx';
import { Loading, Pager, Table, type TableColumn } from '../parts/table.tsx';
import { go, to } from '../router.ts';
import { type LagAt, live, rememberLags } from '../server/overview.ts';
import { useStore } from '../server/store.ts';
import { useQuery } from '../server/use-query.ts';
import { Alerts } from './alerts.tsx';
import { Processes } from './processes.tsx';

const pageSize = 40;

export function OverviewPage({ params }: { readonly params: URLSearchParams }) {
  const { overview, versions, lags } = useStore(live);
  useOlderLags(overview !== undefined);
  return (
    <>
      <h1>Overview</h1>
      {!overview ? (
        <Loading />
      ) : (
        <>
          <Alerts overview={overview} />
          <Totals overview={overview} />
          <Section title="Versions">
            <Versions versions={[...versions.values()]} lags={lags} params={params} />
          </Section>
          <Answers overview={overview} />
          <Processes overview={overview} />
        </>
      )}
    </>
  );
}

/** The trends from before the page was opened. */
function useOlderLags(isReady: boolean): void {
  const { data } = useQuery(LagTrendsDocument, isReady ? { first: pageSize } : undefined);
  useEffect(() => {
    for (const { id, lagTrend } of data?.versions.items ?? [])
      rememberLags(
        id,
        lagTrend.map(({ at, lag }) => ({ at: Date.parse(at), lag: Number(lag) })),
      );
  }, [data]);
}

function Totals({ overview }: { readonly overview: OverviewPartsFragment }) {
  const { head, horizon, appendsPerSecond, deadLetters, processes, connections, versionCount } = overview;
  const held = BigInt(head) - BigInt(horizon);
  return (
    <Figures
      items={[
        { name: 'Versions', value: number(versionCount), note: <HealthCounts overview={overview} /> },
        { name: 'Head', value: number(head), note: `${number(appendsPerSecond)} events/s` },
        {
          name: 'Horizon',
          value: number(horizon),
          note: held > 0n ? `${number(String(held))} behind the head` : 'at the head',
        },
        { name: 'Dead letters', value: <a href="#/dead-letters">{count(deadLetters)}</a> },
        { name: 'Processes', value: number(processes.length), note: rolesOf(processes) },
        { name: 'Connections', value: number(connections.used), note: `of ${number(connections.limit)}` },
      ]}
    />
  );
}

function HealthCounts({ overview }: { readonly overview: OverviewPartsFragment }) {
  const counted = new Map(overview.health.map((each) => [each.health, each.count]));
  const texts = healthOrder.flatMap((health) => {
    const amount = counted.get(health) ?? 0;
    return amount > 0 ? [`${number(amount)} ${healths[health].text}`] : [];
  });
  return <>{texts.join(', ')}</>;
}

function rolesOf(processes: OverviewPartsFragment['processes']): string {
  const roles = Map.groupBy(processes, ({ role }) => role ?? 'unknown');
  return [...roles]
    .map(([role, those]) => `${those.length} ${role === 'all' ? 'gateway and worker' : role}`)
    .join(', ');
}

interface VersionsProps {
  readonly versions: readonly VersionLineFragment[];
  readonly lags: ReadonlyMap<string, readonly LagAt[]>;
  readonly params: URLSearchParams;
}

function Versions({ versions, lags, params }: VersionsProps) {
  const [page, setPage] = useState(1);
  const search = params.get('search')?.toLowerCase() ?? '';
  const health = params.get('health') ?? '';
  const found = versions
    .filter((version) => version.id.includes(search) && (health === '' || version.health === health))
    .sort(byAttention);
  const lastPage = Math.max(Math.ceil(found.length / pageSize), 1);
  const shown = Math.min(page, lastPage);
  const choices = healthOrder
    .map((each) => [each, versions.filter((version) => version.health === each).length] as const)
    .filter(([each, amount]) => amount > 0 || each === health)
    .map(([each, amount]) => [each, `${healths[each].text} (${amount})`] as const);
  return (
    <>
      <Filter
        label="Search versions"
        fields={[
          { name: 'search', label: 'Name', placeholder: 'cart_summary' },
          { name: 'health', label: 'Health', choices: [['', 'any'], ...choices] },
        ]}
        values={params}
        onApply={(values) => {
          setPage(1);
          go(to([], values));
        }}
      />
      <Table
        caption="Versions"
        columns={columnsWith(lags)}
        items={found.slice((shown - 1) * pageSize, shown * pageSize)}
        keyOf={({ id }) => id}
        rowClass={({ health: state }) => (healths[state].tone === 'bad' ? 'urgent' : undefined)}
        empty={versions.length === 0 ? 'No version is registered yet.' : 'No version matches.'}
      />
      <Pager
        name="versions"
        page={shown}
        hasNext={shown < lastPage}
        forward={() => setPage(shown + 1)}
        back={() => setPage(shown - 1)}
      />
    </>
  );
}

/** What needs attention first, then by name and number. */
function byAttention(a: VersionLineFragment, b: VersionLineFragment): number {
  const worse = healthOrder.indexOf(a.health) - healthOrder.indexOf(b.health);
  return worse || a.projection.localeCompare(b.projection) || a.number - b.number;
}

function columnsWith(lags: ReadonlyMap<string, readonly LagAt[]>): readonly TableColumn<VersionLineFragment>[] {
  return [
    {
      title: 'Version',
      isName: true,
      cell: (version) => (
        <>
          <a href={to(['versions', version.id])}>{version.id}</a>
          {storeText(version.store) && <small>{storeText(version.store)}</small>}
          <Remark version={version} />
        </>
      ),
    },
    { title: 'Health', cell: ({ health }) => <HealthBadge health={health} /> },
    { title: 'State', cell: StateText },
    { title: 'Progress', cell: ({ progress, id }) => <Progress share={progress} label={`Progress of ${id}`} /> },
    { title: 'Behind', isNumber: true, cell: Behind },
    { title: 'Trend', isExtra: true, cell: ({ id }) => <Spark points={lags.get(id) ?? []} /> },
    { title: 'Events/s', isNumber: true, cell: Pace },
    {
      title: 'Dead letters',
      isNumber: true,
      cell: ({ id, deadLetters }) =>
        deadLetters.value > 0 ? <a href={to(['dead-letters'], { of: id })}>{count(deadLetters)}</a> : '0',
    },
    { title: 'Owner', isExtra: true, cell: ({ owner }) => <span class="owner">{owner ?? '–'}</span> },
  ];
}

export function StateText({ state, answers, inline }: Pick<VersionLineFragment, 'state' | 'answers' | 'inline'>) {
  return (
    <>
      {state.toLowerCase()}
      {inline && <small>inline: {inline}</small>}
      {answers && <small>answers</small>}
    </>
  );
}

function Pace({ eventsPerSecond, etaSeconds }: VersionLineFragment) {
  return (
    <>
      {number(eventsPerSecond)}
      {etaSeconds != null && <small>ETA {duration(etaSeconds)}</small>}
    </>
  );
}

function Behind({ lagEvents, lagSeconds }: VersionLineFragment) {
  return (
    <>
      {count(lagEvents)}
      {lagSeconds > 0 && <small>{duration(lagSeconds)}</small>}
    </>
  );
}

/** The most important thing to know about a version, in short. */
function Remark({ version }: { readonly version: VersionLineFragment }) {
  const { error, heldReason, paused, rebuild, canary, unchecked } = version;
  if (unchecked) return <small class="bad-text">{unchecked}</small>;
  if (error) return <small class="bad-text">{error.message}</small>;
  if (paused)
    return (
      <small>
        paused by {paused.by}: {paused.reason}
      </small>
    );
  if (heldReason) return <small>{heldReason}</small>;
  if (rebuild) return <small>rebuild {rebuild.form}</small>;
  if (canary) return <small>canary {canary.text}</small>;
  return null;
}

function Answers({ overview: { answers } }: { readonly overview: OverviewPartsFragment }) {
  const disputed = Map.groupBy(answers, ({ projection }) => projection);
  return (
    <Section title="Who answers">
      <PagedAnswers answers={answers} isDisputed={(projection) => (disputed.get(projection)?.length ?? 0) > 1} />
    </Section>
  );
}

interface PagedAnswersProps {
  readonly answers: OverviewPartsFragment['answers'];
  readonly isDisputed: (projection: string) => boolean;
}

function PagedAnswers({ answers, isDisputed }: PagedAnswersProps) {
  const [page, setPage] = useState(1);
  const size = 20;
  const shown = Math.min(page, Math.max(Math.ceil(answers.length / size), 1));
  return (
    <>
      <Table
        caption="Which version answers clients"
        columns={[
          { title: 'Read model', isName: true, cell: ({ projection }) => projection },
          {
            title: 'Answered by',
            cell: ({ version, canary, projection }) => (
              <>
                {version ? <a href={to(['versions', version])}>{version}</a> : 'nothing'}
                {canary && (
                  <small>
                    some clients by <a href={to(['versions', canary])}>{canary}</a>
                  </small>
                )}
                {isDisputed(projection) && <small>The gateways do not agree.</small>}
              </>
            ),
          },
          {
            title: 'In',
            isText: true,
            cell: ({ processes }) => (processes.length === 0 ? 'no gateway runs' : processes.join(', ')),
          },
        ]}
        items={answers.slice((shown - 1) * size, shown * size)}
        keyOf={({ projection, version, canary }) => `${projection} ${version} ${canary}`}
        empty="No read model is declared."
      />
      <Pager
        name="read models"
        page={shown}
        hasNext={shown * size < answers.length}
        forward={() => setPage(shown + 1)}
        back={() => setPage(shown - 1)}
      />
    </>
  );
}
