import { ActionButton } from '../actions/action-button.tsx';
import { snapshotAction } from '../actions/version-actions.ts';
import { DiscardsDocument, VersionTableDocument, type VersionTableQuery } from '../gql/graphql.ts';
import { Figures, Section } from '../parts/figures.tsx';
import { bytes, keyText, number, Time } from '../parts/format.tsx';
import { Badge } from '../parts/marks.tsx';
import { Problem } from '../parts/problem.tsx';
import { Loading, PagedTable, Table } from '../parts/table.tsx';
import { to } from '../router.ts';
import { usePages, useQuery } from '../server/use-query.ts';
import type { VersionDetail } from './version.tsx';

interface VersionTableTabProps {
  readonly version: VersionDetail;
  readonly onDone: () => void;
}

type Stored = NonNullable<VersionTableQuery['version']>;

/** The table in PostgreSQL: its size, indexes, columns, snapshots, and events that it leaves out. */
export function VersionTableTab({ version: { id }, onDone }: VersionTableTabProps) {
  const { data, error, reload } = useQuery(VersionTableDocument, { id });
  const stored = data?.version;
  if (error) return <Problem error={error} retry={reload} />;
  if (!stored) return <Loading />;
  const done = () => {
    reload();
    onDone();
  };
  return (
    <>
      <Size table={stored.table} missing={stored.missingIndexes} />
      <Snapshots id={id} stored={stored} onDone={done} />
      <Section title="Columns">
        <Table
          caption={`Columns of ${id}`}
          columns={[
            { title: 'Column', isName: true, cell: ({ name }) => <code>{name}</code> },
            { title: 'Type', cell: ({ type }) => type },
            {
              title: 'Note',
              cell: ({ isKey, isHidden }) =>
                [isKey && 'key', isHidden && 'values are hidden here'].filter(Boolean).join(', ') || '–',
            },
          ]}
          items={stored.columns}
          keyOf={({ name }) => name}
          empty="This process does not declare the version."
        />
      </Section>
      <Discards id={id} />
    </>
  );
}

function Size({ table, missing }: { readonly table: Stored['table']; readonly missing: readonly string[] }) {
  if (!table)
    return (
      <Section title="Size">
        <p class="empty">It has no table.</p>
      </Section>
    );
  return (
    <>
      <Section title="Size">
        <Figures
          items={[
            { name: 'Table', value: <code>{`${table.schema}.${table.name}`}</code> },
            {
              name: 'Rows',
              value: table.rows == null ? '–' : number(table.rows),
              note: table.rows == null ? 'no estimate yet' : 'estimated',
            },
            { name: 'Rows and values', value: bytes(table.bytes) },
            { name: 'Indexes', value: bytes(table.indexBytes) },
          ]}
        />
      </Section>
      <Section title="Indexes">
        {missing.length > 0 && <p>Dropped by hand: {missing.join(', ')}</p>}
        <Table
          caption="Indexes"
          columns={[
            { title: 'Index', isName: true, cell: ({ name }) => <code>{name}</code> },
            { title: 'Size', isNumber: true, cell: (index) => bytes(index.bytes) },
            { title: 'Scans', isNumber: true, cell: ({ scans }) => number(scans) },
            {
              title: 'State',
              cell: ({ isValid }) => (
                <Badge tone={isValid ? 'good' : 'bad'} shape={isValid ? 'dot' : 'cross'}>
                  {isValid ? 'valid' : 'not valid'}
                </Badge>
              ),
            },
            { title: 'Definition', isText: true, cell: ({ definition }) => <code>{definition}</code> },
          ]}
          items={table.indexes}
          keyOf={({ name }) => name}
          empty="It has no index."
        />
      </Section>
    </>
  );
}

interface SnapshotsProps {
  readonly id: string;
  readonly stored: Stored;
  readonly onDone: () => void;
}

function Snapshots({ id, stored: { snapshots, actions }, onDone }: SnapshotsProps) {
  const allowed = (['RESTORE_SNAPSHOT', 'DROP_SNAPSHOT'] as const).filter((name) => actions.includes(name));
  return (
    <Section title="Snapshots">
      <Table
        caption={`Snapshots of ${id}`}
        columns={[
          { title: 'Snapshot', isName: true, cell: (snapshot) => snapshot.id },
          { title: 'Position', isNumber: true, cell: ({ position }) => number(position) },
          { title: 'Rows', isNumber: true, cell: ({ rows }) => number(rows) },
          { title: 'Size', isNumber: true, cell: (snapshot) => bytes(snapshot.bytes) },
          { title: 'Taken', cell: ({ takenAt }) => <Time at={takenAt} /> },
          {
            title: 'By',
            isText: true,
            cell: ({ automatic, actor, reason, isOfThisCode }) => (
              <>
                {automatic ? 'schedule' : `${actor}: ${reason}`}
                {!isOfThisCode && <small>built by other code</small>}
              </>
            ),
          },
          {
            title: 'Actions',
            cell: (snapshot) => (
              <span class="actions">
                {allowed.map((name) => (
                  <ActionButton key={name} action={snapshotAction(name, id, snapshot.id)} onDone={onDone} />
                ))}
              </span>
            ),
          },
        ]}
        items={snapshots}
        keyOf={(snapshot) => snapshot.id}
        empty="There is no snapshot of its table."
      />
    </Section>
  );
}

function Discards({ id }: { readonly id: string }) {
  const pages = usePages(DiscardsDocument, { version: id }, ({ discards }) => discards);
  return (
    <Section title="Discarded events">
      <PagedTable
        caption={`Events that ${id} leaves out`}
        columns={[
          {
            title: 'Event',
            isName: true,
            cell: ({ position }) => <a href={to(['log', position])}>{number(position)}</a>,
          },
          { title: 'Type', cell: ({ eventType }) => eventType },
          { title: 'Row', cell: ({ key }) => (key == null ? '–' : <code>{keyText(key)}</code>) },
          { title: 'When', cell: ({ at }) => <Time at={at} /> },
          { title: 'Who', cell: ({ actor }) => actor },
          { title: 'Why', isText: true, cell: ({ reason }) => reason },
        ]}
        pages={pages}
        keyOf={({ position, key }) => `${position} ${JSON.stringify(key)}`}
        empty="No event is discarded."
      />
    </Section>
  );
}
