import { useState } from 'preact/hooks';
import { RowsDocument, type VersionLineFragment } from '../gql/graphql.ts';
import { Section } from '../parts/figures.tsx';
import { Field } from '../parts/form.tsx';
import { keyText, plain } from '../parts/format.tsx';
import { PagedTable } from '../parts/table.tsx';
import { to } from '../router.ts';
import { usePages } from '../server/use-query.ts';

/** Rows of a version by key, to pick one. */
export function RowList({ versions }: { readonly versions: readonly VersionLineFragment[] }) {
  const [chosen, setChosen] = useState<string>();
  const version = versions.find(({ id }) => id === chosen) ?? versions.find(({ answers }) => answers) ?? versions[0];
  if (!version) return <p class="empty">This process declares no version of it.</p>;
  return (
    <Section
      title="Pick a row"
      aside={
        versions.length > 1 && (
          <Field label="Rows of">
            {(id) => (
              <select id={id} value={version.id} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
                {versions.map((each) => (
                  <option key={each.id}>{each.id}</option>
                ))}
              </select>
            )}
          </Field>
        )
      }
    >
      <Rows key={version.id} version={version} />
    </Section>
  );
}

function Rows({ version: { id, projection } }: { readonly version: VersionLineFragment }) {
  const pages = usePages(RowsDocument, { version: id }, ({ rows }) => rows);
  return (
    <PagedTable
      caption={`Rows of ${id}`}
      columns={[
        {
          title: 'Key',
          isName: true,
          cell: ({ key }) => (
            <a href={to(['rows'], { projection, key: JSON.stringify(key) })}>
              <code>{keyText(key)}</code>
            </a>
          ),
        },
        { title: 'Row', isText: true, cell: ({ row }) => <RowSummary row={row} /> },
      ]}
      pages={pages}
      keyOf={({ key }) => JSON.stringify(key)}
      empty="It has no rows."
    />
  );
}

function RowSummary({ row }: { readonly row: unknown }) {
  if (row === null || typeof row !== 'object') return null;
  return (
    <span class="row-summary">
      {Object.entries(row).map(([name, value]) => (
        <span key={name}>
          {name} <code>{plain(value).slice(0, 80)}</code>
        </span>
      ))}
    </span>
  );
}
