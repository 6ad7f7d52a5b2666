import { VersionClientsDocument, VersionSchemaChangesDocument } from '../gql/graphql.ts';
import { Figures, Section } from '../parts/figures.tsx';
import { Ago, number, Time } from '../parts/format.tsx';
import { Problem } from '../parts/problem.tsx';
import { Loading, Table } from '../parts/table.tsx';
import { useQuery } from '../server/use-query.ts';
import { ChangeList } from './change-list.tsx';
import type { VersionDetail } from './version.tsx';

/** What clients would notice of this version: as a canary, in compared queries, and in the schema. */
export function VersionRollout({ version }: { readonly version: VersionDetail }) {
  return (
    <>
      <Canary canary={version.canary} />
      <Shadow shadow={version.shadow} />
      <Changes id={version.id} />
      <Pins id={version.id} />
    </>
  );
}

function Canary({ canary }: { readonly canary: VersionDetail['canary'] }) {
  if (!canary)
    return (
      <Section title="Canary">
        <p class="empty">It is not a canary.</p>
      </Section>
    );
  return (
    <Section title="Canary">
      <p class="lead">Answers {canary.text}.</p>
      <Figures
        items={[
          {
            name: 'Canary',
            value: `${number(canary.operations)} operations`,
            note: `${number(canary.errors)} errors, ${rate(canary.errors, canary.operations)}`,
          },
          {
            name: 'Other clients',
            value: `${number(canary.otherOperations)} operations`,
            note: `${number(canary.otherErrors)} errors, ${rate(canary.otherErrors, canary.otherOperations)}`,
          },
        ]}
      />
    </Section>
  );
}

function rate(errors: number, operations: number): string {
  if (operations === 0) return 'no rate yet';
  return `${new Intl.NumberFormat('en', { maximumSignificantDigits: 2 }).format((errors / operations) * 100)} %`;
}

function Shadow({ shadow }: { readonly shadow: VersionDetail['shadow'] }) {
  if (!shadow)
    return (
      <Section title="Compared live queries">
        <p class="empty">Live queries are not compared.</p>
      </Section>
    );
  return (
    <Section title="Compared live queries">
      <p class="lead">
        {shadow.stoppedAt ? 'Compared' : 'Compares'} one query in {number(shadow.oneOf)} since{' '}
        <Time at={shadow.startedAt} />
        {shadow.stoppedAt && (
          <>
            {' '}
            until <Time at={shadow.stoppedAt} />
          </>
        )}
        .
      </p>
      <Figures
        items={[
          { name: 'Same', value: number(shadow.same) },
          { name: 'Different', value: number(shadow.different) },
          { name: 'Failed', value: number(shadow.failed) },
          { name: 'Not compared', value: number(shadow.skipped) },
        ]}
      />
      <Table
        caption="Differences in responses"
        columns={[
          { title: 'Operation', isName: true, cell: ({ operation }) => operation },
          { title: 'Field', cell: ({ path }) => <code>{path}</code> },
          { title: 'Times', isNumber: true, cell: ({ times }) => number(times) },
          { title: 'Active version', isText: true, cell: ({ older }) => <code>{older ?? '(hidden)'}</code> },
          { title: 'This version', isText: true, cell: ({ newer }) => <code>{newer ?? '(hidden)'}</code> },
          { title: 'Last seen', cell: ({ seenAt }) => <Ago at={seenAt} /> },
        ]}
        items={shadow.examples}
        keyOf={({ operation, path }) => `${operation} ${path}`}
        empty="No response differs."
      />
    </Section>
  );
}

function Changes({ id }: { readonly id: string }) {
  const { data, error, reload } = useQuery(VersionSchemaChangesDocument, { id });
  return (
    <Section title="What changes for clients">
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && <ChangeList changes={data.schemaChanges} />}
    </Section>
  );
}

function Pins({ id }: { readonly id: string }) {
  const { data } = useQuery(VersionClientsDocument, { id });
  return (
    <Section title="Clients that pin it">
      <Table
        caption={`Clients that pin ${id}`}
        columns={[
          {
            title: 'Client',
            isName: true,
            cell: ({ client, clientVersion }) => `${client} ${clientVersion}`.trim() || '(unnamed)',
          },
          { title: 'Operations', isNumber: true, cell: ({ operations }) => number(operations) },
          { title: 'Last', cell: ({ lastAt }) => <Ago at={lastAt} /> },
        ]}
        items={data?.version?.pins ?? []}
        keyOf={({ client, clientVersion }) => `${client} ${clientVersion}`}
        empty="No client has pinned it in the last 30 days."
      />
    </Section>
  );
}
