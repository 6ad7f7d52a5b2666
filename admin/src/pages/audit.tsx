import { useState } from 'preact/hooks';
import { type AuditFilter, AuditLogDocument } from '../gql/graphql.ts';
import { Filter } from '../parts/form.tsx';
import { Problem } from '../parts/problem.tsx';
import { PagedTable } from '../parts/table.tsx';
import { go, to } from '../router.ts';
import { type ApiError, auditFile } from '../server/api.ts';
import { live } from '../server/overview.ts';
import { useStore } from '../server/store.ts';
import { apiError, usePages } from '../server/use-query.ts';
import { auditColumns } from './audit-list.tsx';

export function AuditPage({ params }: { readonly params: URLSearchParams }) {
  const { versions, reactors } = useStore(live);
  const filter = filterOf(params);
  const pages = usePages(AuditLogDocument, { filter }, ({ auditLog }) => auditLog);
  const [error, setError] = useState<ApiError>();
  const download = () =>
    auditFile(fileParameters(filter)).then(
      (file) => {
        setError(undefined);
        save(file, 'refold-audit.csv');
      },
      (failure: unknown) => setError(apiError(failure)),
    );
  return (
    <>
      <h1>Audit log</h1>
      <p class="lead">Who changed what, when and why: every change of state and every action of an operator.</p>
      <Filter
        label="Search the audit log"
        fields={[
          {
            name: 'projection',
            label: 'Projection',
            suggestions: [...new Set([...versions.values()].map(({ projection }) => projection))],
          },
          { name: 'version', label: 'Version', type: 'number' },
          { name: 'reactor', label: 'Reactor', suggestions: [...reactors.keys()] },
          { name: 'actor', label: 'Who' },
          { name: 'since', label: 'Since', type: 'datetime-local' },
          { name: 'until', label: 'Until', type: 'datetime-local' },
        ]}
        values={params}
        onApply={(values) => go(to(['audit'], values))}
      >
        <button type="button" onClick={() => void download()}>
          Download as CSV
        </button>
      </Filter>
      {error && <Problem error={error} />}
      <PagedTable
        caption="Audit log"
        columns={auditColumns}
        pages={pages}
        keyOf={({ id }) => id}
        empty="Nothing was changed, or nothing matches."
      />
    </>
  );
}

function filterOf(params: URLSearchParams): AuditFilter {
  const text = (name: string) => params.get(name) || undefined;
  const time = (name: string) => (params.get(name) ? new Date(params.get(name) ?? '').toISOString() : undefined);
  return {
    projection: text('projection'),
    version: params.get('version') ? Number(params.get('version')) : undefined,
    reactor: text('reactor'),
    actor: text('actor'),
    since: time('since'),
    until: time('until'),
  };
}

function fileParameters(filter: AuditFilter): URLSearchParams {
  return new URLSearchParams(
    Object.entries(filter).flatMap(([name, value]) => (value == null ? [] : [[name, String(value)]])),
  );
}

function save(file: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
