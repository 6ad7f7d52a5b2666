import { VersionHistoryDocument, VersionRunsDocument } from '../gql/graphql.ts';
import { Section } from '../parts/figures.tsx';
import { duration, number, Time } from '../parts/format.tsx';
import { PagedTable } from '../parts/table.tsx';
import { usePages } from '../server/use-query.ts';
import { historyColumns } from './audit-list.tsx';
import type { VersionDetail } from './version.tsx';

const life = ['BUILDING', 'READY', 'ACTIVE', 'RETIRED'] as const;

/** Where the version is in its life, and how it got there: who, and why. */
export function VersionHistory({ version: { id, state } }: { readonly version: VersionDetail }) {
  const pages = usePages(VersionHistoryDocument, { id }, ({ version }) => version?.history);
  const reached = life.indexOf(state as (typeof life)[number]); // -1 for a failed version;
  return (
    <>
      <Section title="Life line">
        <ol class="life">
          {life.map((each, index) => (
            <li
              key={each}
              class={index < reached ? 'passed' : undefined}
              aria-current={each === state ? 'step' : undefined}
            >
              {each.toLowerCase()}
            </li>
          ))}
          {state === 'FAILED' && (
            <li class="failed" aria-current="step">
              failed
            </li>
          )}
        </ol>
      </Section>
      <Section title="History">
        <PagedTable
          caption={`History of ${id}`}
          columns={historyColumns}
          pages={pages}
          keyOf={(entry) => entry.id}
          empty="Nothing is recorded."
        />
      </Section>
    </>
  );
}

export function VersionRuns({ id }: { readonly id: string }) {
  const pages = usePages(VersionRunsDocument, { id }, ({ version }) => version?.runs);
  return (
    <Section title="Run log">
      <p class="lead">What its processor and its rebuild did, in intervals of ten seconds.</p>
      <PagedTable
        caption={`Run log of ${id}`}
        columns={[
          { title: 'Began', isName: true, cell: ({ startedAt }) => <Time at={startedAt} /> },
          { title: 'Work', cell: ({ kind, partition }) => (partition > 0 ? `${kind} ${partition}` : kind) },
          {
            title: 'Positions',
            isNumber: true,
            cell: ({ fromPosition, toPosition }) => `${number(fromPosition)} – ${number(toPosition)}`,
          },
          { title: 'Batches', isNumber: true, cell: ({ batches }) => number(batches) },
          { title: 'Events', isNumber: true, cell: ({ events }) => number(events) },
          { title: 'Rows', isNumber: true, cell: ({ rows }) => number(rows) },
          { title: 'Busy', isNumber: true, cell: ({ busyMs }) => duration(Number(busyMs) / 1000) },
        ]}
        pages={pages}
        keyOf={({ kind, partition, startedAt, fromPosition }) => `${kind} ${partition} ${startedAt} ${fromPosition}`}
        empty="It has done nothing in the last seven days."
      />
    </Section>
  );
}
