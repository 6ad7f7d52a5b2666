import type { Criticality, SchemaChangeListFragment } from '../gql/graphql.ts';
import { number } from '../parts/format.tsx';
import { Badge, type Tone } from '../parts/marks.tsx';
import { to } from '../router.ts';

const order: readonly Criticality[] = ['BREAKING', 'DANGEROUS', 'SAFE'];
const tones: Readonly<Record<Criticality, Tone>> = { BREAKING: 'bad', DANGEROUS: 'warn', SAFE: 'good' };
const shapes = { BREAKING: 'cross', DANGEROUS: 'triangle', SAFE: 'dot' } as const;

type Change = SchemaChangeListFragment['changes'][number];

/** A change, and those that only follow from it: of filters, orders and aggregates. */
interface Group {
  readonly head: Change;
  readonly derived: Change[];
}

function groupsOf(changes: readonly Change[]): readonly Group[] {
  const groups: Group[] = [];
  for (const change of changes) {
    const last = groups.at(-1);
    if (change.isDerived && last) last.derived.push(change);
    else groups.push({ head: change, derived: [] });
  }
  return groups.toSorted((a, b) => order.indexOf(a.head.criticality) - order.indexOf(b.head.criticality));
}

/** What a version changes in the schema, the breaking changes first, and who uses what would break. */
export function ChangeList({
  changes: { changes, than, days, recordedDays },
}: {
  readonly changes: SchemaChangeListFragment;
}) {
  if (changes.length === 0) return <p class="empty">Nothing, compared with {than}.</p>;
  return (
    <>
      <p class="lead">
        Compared with {than}. {recordedText(days, recordedDays)}
      </p>
      <ul class="changes">
        {groupsOf(changes).map(({ head, derived }) => (
          <ChangeItem key={`${head.path} ${head.message}`} change={head} derived={derived} />
        ))}
      </ul>
    </>
  );
}

function recordedText(days: number, recordedDays: number | null | undefined): string {
  if (recordedDays == null) return 'A gateway does not record which fields clients use, so clients may be missing.';
  if (recordedDays < 1) return 'What clients use has been recorded for less than a day.';
  return `Clients of the last ${number(Math.floor(Math.min(days, recordedDays)))} days.`;
}

function ChangeItem({ change, derived }: { readonly change: Change; readonly derived: readonly Change[] }) {
  const { criticality, message, usedBy } = change;
  return (
    <li>
      <Badge tone={tones[criticality]} shape={shapes[criticality]}>
        {criticality.toLowerCase()}
      </Badge>
      <div>
        {message}
        {criticality === 'BREAKING' && usedBy.length === 0 && <small>No known client uses it.</small>}
        <Users usedBy={usedBy} />
        {derived.length > 0 && (
          <details open={derived.some((one) => one.usedBy.length > 0)}>
            <summary>{derived.length === 1 ? '1 change follows' : `${derived.length} changes follow`} from it</summary>
            <ul>
              {derived.map((one) => (
                <li key={`${one.path} ${one.message}`}>
                  {one.message}
                  <Users usedBy={one.usedBy} />
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </li>
  );
}

const shownUsers = 20;

function Users({ usedBy }: { readonly usedBy: Change['usedBy'] }) {
  if (usedBy.length === 0) return null;
  return (
    <ul>
      {usedBy.slice(0, shownUsers).map((use) => (
        <li key={`${use.client} ${use.clientVersion} ${use.path}`}>
          <a href={to(['clients'], { client: use.client })}>
            {`${use.client} ${use.clientVersion}`.trim() || '(unnamed)'}
          </a>
          : <code>{use.path}</code>, {number(use.operations)} operations
        </li>
      ))}
      {usedBy.length > shownUsers && <li>{usedBy.length - shownUsers} more</li>}
    </ul>
  );
}
