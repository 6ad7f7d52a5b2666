import { ClientsDocument, FieldUsageDocument, PendingChangesDocument } from '../gql/graphql.ts';
import { Section } from '../parts/figures.tsx';
import { Filter } from '../parts/form.tsx';
import { Ago, count, number } from '../parts/format.tsx';
import { Notice } from '../parts/marks.tsx';
import { Problem } from '../parts/problem.tsx';
import { Loading, PagedTable } from '../parts/table.tsx';
import { go, to } from '../router.ts';
import { usePages, useQuery } from '../server/use-query.ts';
import { ChangeList } from './change-list.tsx';

/** Who reads what, and whom a version that waits would break. */
export function ClientsPage({ params }: { readonly params: URLSearchParams }) {
  const [client, path] = [params.get('client') || undefined, params.get('path') || undefined];
  const days = Number(params.get('days')) || 30;
  return (
    <>
      <h1>Clients</h1>
      <Filter
        label="Search field usage"
        fields={[
          { name: 'client', label: 'Client' },
          { name: 'path', label: 'Field', placeholder: 'CartSummary.totalAmount' },
          {
            name: 'days',
            label: 'Of the last',
            choices: [
              ['', '30 days'],
              ['1', 'day'],
              ['7', '7 days'],
              ['90', '90 days'],
            ],
          },
        ]}
        values={params}
        onApply={(values) => go(to(['clients'], values))}
      />
      {client === undefined && path === undefined && (
        <>
          <Waiting />
          <Known days={days} />
        </>
      )}
      <Usage client={client} path={path} days={days} />
    </>
  );
}

function Waiting() {
  const { data, error, reload } = useQuery(PendingChangesDocument, {});
  return (
    <Section title="Versions that wait">
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data?.pendingChanges.length === 0 && <p class="empty">No version waits to answer.</p>}
      {data?.pendingChanges.map((changes) => (
        <article key={changes.version}>
          <h3>
            <a href={to(['versions', changes.version, 'rollout'])}>{changes.version}</a>
          </h3>
          <ChangeList changes={changes} />
        </article>
      ))}
    </Section>
  );
}

function Known({ days }: { readonly days: number }) {
  const pages = usePages(ClientsDocument, { days }, ({ clients }) => clients);
  return (
    <Section title="Known clients">
      <PagedTable
        caption="Known clients"
        columns={[
          {
            title: 'Client',
            isName: true,
            cell: ({ name }) => <a href={to(['clients'], { client: name })}>{name || '(unnamed)'}</a>,
          },
          { title: 'Version', cell: ({ version }) => version || '–' },
          { title: 'Operations', isNumber: true, cell: ({ operations }) => `${number(operations)}+` },
          { title: 'Fields', isNumber: true, cell: ({ fields }) => count(fields) },
          { title: 'Pins', cell: ({ pins }) => (pins.length === 0 ? '–' : <PinLinks pins={pins} />) },
          { title: 'Last', cell: ({ lastAt }) => <Ago at={lastAt} /> },
        ]}
        pages={pages}
        keyOf={({ name, version }) => `${name} ${version}`}
        empty="No client is known. Clients name themselves with the headers of docs/clients.md."
      />
    </Section>
  );
}

function PinLinks({ pins }: { readonly pins: readonly string[] }) {
  return (
    <>
      {pins.map((pin) => (
        <a key={pin} href={to(['versions', pin])}>
          {pin}{' '}
        </a>
      ))}
    </>
  );
}

interface UsageProps {
  readonly client: string | undefined;
  readonly path: string | undefined;
  readonly days: number;
}

function Usage({ client, path, days }: UsageProps) {
  const pages = usePages(FieldUsageDocument, { client, path, days }, ({ fieldUsage }) => fieldUsage);
  const recorded = pages.data?.fieldUsage.recordedDays;
  return (
    <Section title="Fields in use">
      {pages.data && recorded == null && (
        <Notice tone="warn">A gateway does not record which fields clients use, so fields may be missing.</Notice>
      )}
      <PagedTable
        caption="Fields in use"
        columns={[
          {
            title: 'Field',
            isName: true,
            cell: (usage) => (
              <a href={to(['clients'], { path: usage.path })}>
                <code>{usage.path}</code>
              </a>
            ),
          },
          {
            title: 'Client',
            cell: (usage) => `${usage.client} ${usage.clientVersion}`.trim() || '(unnamed)',
          },
          { title: 'Operations', isNumber: true, cell: ({ operations }) => number(operations) },
          { title: 'Pins', cell: ({ pins }) => (pins.length === 0 ? '–' : <PinLinks pins={pins} />) },
          { title: 'Last', cell: ({ lastAt }) => <Ago at={lastAt} /> },
        ]}
        pages={pages}
        keyOf={(usage) => `${usage.path} ${usage.client} ${usage.clientVersion} ${usage.pins}`}
        empty="No use is recorded, or nothing matches."
      />
    </Section>
  );
}
