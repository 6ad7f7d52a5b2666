import type { Criticality, SchemaChangeListFragment } from '../gql/graphql.ts';
import { number } from '../parts/format.tsx';
import { Badge, type Tone } from '../parts/marks.tsx';
import { to } from '../router.ts';

const order: readonly Criticality[] = ['BREAKING', 'DANGEROUS', 'SAFE'];
const tones: Readonly<Record<Criticality, Tone>> = { BREAKING: 'bad', DANGEROUS: 'warn', SAFE: 'good' };
const shapes = { BREAKING: 'cross', DANGEROUS: 'triangle', SAFE: 'dot' } as const;

/** What a version changes in the schema, the breaking changes first, and who uses what would break. */
export function ChangeList({
  changes: { changes, than, days, recordedDays },
}: {
  readonly changes: SchemaChangeListFragment;
}) {
  const sorted = changes.toSorted((a, b) => order.indexOf(a.criticality) - order.indexOf(b.criticality));
  const recorded =
    recordedDays == null
      ? 'A gateway does not record which fields clients use, so clients may be missing.'
      : `Clients of the last ${number(Math.min(days, recordedDays))} days.`;
  if (changes.length === 0) return <p class="empty">Nothing, compared with {than}.</p>;
  return (
    <>
      <p class="lead">
        Compared with {than}. {recorded}
      </p>
      <ul class="changes">
        {sorted.map(({ criticality, message, path, isDerived, usedBy }) => (
          <li key={`${path} ${message}`} class={isDerived ? 'derived' : undefined}>
            <Badge tone={tones[criticality]} shape={shapes[criticality]}>
              {criticality.toLowerCase()}
            </Badge>
            <div>
              {message}
              {criticality === 'BREAKING' && usedBy.length === 0 && <small>No known client uses it.</small>}
              {usedBy.length > 0 && (
                <ul>
                  {usedBy.slice(0, 20).map((use) => (
                    <li key={`${use.client} ${use.clientVersion} ${use.path}`}>
                      <a href={to(['clients'], { client: use.client })}>
                        {`${use.client} ${use.clientVersion}`.trim() || '(unnamed)'}
                      </a>
                      : <code>{use.path}</code>, {number(use.operations)} operations
                    </li>
                  ))}
                  {usedBy.length > 20 && <li>{usedBy.length - 20} more</li>}
                </ul>
              )}
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}
