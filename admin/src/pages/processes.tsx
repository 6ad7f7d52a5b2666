import { useState } from 'preact/hooks';
import type { OverviewPartsFragment } from '../gql/graphql.ts';
import { Section } from '../parts/figures.tsx';
import { duration, number, Time } from '../parts/format.tsx';
import { Pager, Table } from '../parts/table.tsx';

type Process = OverviewPartsFragment['processes'][number];

const size = 20;

/** Which processes run, what each owns, and how the database's connections are used. */
export function Processes({ overview }: { readonly overview: OverviewPartsFragment }) {
  const { processes, stores, at } = overview;
  const groups = stores.flatMap(({ name, connections }) =>
    (connections?.groups ?? []).map((group) => ({ store: name, ...group })),
  );
  const [page, setPage] = useState(1);
  const shown = Math.min(page, Math.max(Math.ceil(processes.length / size), 1));
  return (
    <>
      <Section title="Processes">
        <Table
          caption="Running processes"
          columns={[
            { title: 'Process', isName: true, cell: ({ name }) => name },
            { title: 'Role', cell: ({ role }) => role ?? 'unknown' },
            { title: 'Owns', isText: true, cell: (process) => <Owned process={process} overview={overview} /> },
            { title: 'Declares', isNumber: true, cell: ({ versions }) => `${number(versions.length)} versions` },
            { title: 'Started', isExtra: true, cell: ({ startedAt }) => <Time at={startedAt} /> },
            {
              title: 'Last heartbeat',
              isNumber: true,
              cell: ({ heartbeatAt }) => heartbeatText((Date.parse(at) - Date.parse(heartbeatAt)) / 1000),
            },
          ]}
          items={processes.slice((shown - 1) * size, shown * size)}
          keyOf={({ name }) => name}
          empty="No process reports."
        />
        <Pager
          name="processes"
          page={shown}
          hasNext={shown * size < processes.length}
          forward={() => setPage(shown + 1)}
          back={() => setPage(shown - 1)}
        />
      </Section>
      <Section title="Connections">
        <Table
          caption="Connections to the databases"
          columns={[
            { title: 'Program', isName: true, cell: ({ applicationName }) => applicationName || '(unnamed)' },
            ...(stores.length > 1 ? [{ title: 'Store', cell: ({ store }: { readonly store: string }) => store }] : []),
            { title: 'State', cell: ({ state }) => state || 'unknown' },
            { title: 'Connections', isNumber: true, cell: ({ count }) => number(count) },
          ]}
          items={groups}
          keyOf={({ store, applicationName, state }) => `${store} ${applicationName} ${state}`}
          empty="No connection is visible."
        />
      </Section>
    </>
  );
}

function heartbeatText(seconds: number): string {
  return seconds < 3 ? 'just now' : `${duration(seconds)} ago`;
}

const shownUnits = 3;

/** The units of a process, with the lease of each if ownership is by lease. */
function Owned({ process, overview }: { readonly process: Process; readonly overview: OverviewPartsFragment }) {
  const leases = new Map(overview.leases.map((lease) => [lease.unit, lease]));
  if (process.owns.length === 0) return <>nothing</>;
  const rest = process.owns.slice(shownUnits);
  const unit = (name: string) => {
    const lease = leases.get(name);
    return (
      <li key={name}>
        {name}
        {lease && (
          <>
            {' '}
            (lease until <Time at={lease.expiresAt} />)
          </>
        )}
      </li>
    );
  };
  return (
    <>
      <ul class="units">{process.owns.slice(0, shownUnits).map(unit)}</ul>
      {rest.length > 0 && (
        <details>
          <summary>{rest.length} more</summary>
          <ul class="units">{rest.map(unit)}</ul>
        </details>
      )}
    </>
  );
}
