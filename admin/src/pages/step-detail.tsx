import type { RowHistoryQuery } from '../gql/graphql.ts';
import { Json, Scrollable } from '../parts/figures.tsx';
import { number, plain, Time } from '../parts/format.tsx';
import { Icon, OutcomeBadge } from '../parts/marks.tsx';
import { to } from '../router.ts';
import type { Step } from './step-list.tsx';

type State = Step['states'][number];
type Column = RowHistoryQuery['rowHistory']['columns'][number];

interface StepDetailProps {
  readonly step: Step;
  readonly columns: readonly Column[];
}

/** One event, and the row before and after it in each version. */
export function StepDetail({ step: { event, states }, columns }: StepDetailProps) {
  return (
    <>
      <div aria-live="polite">
        <h3>
          {event.type} <a href={to(['log', event.position])}>{number(event.position)}</a>
        </h3>
        <p class="quiet-text">
          <Time at={event.recordedAt} /> in {event.family}/{event.streamId}
        </p>
        <ul class="changed-list">
          {states.map((state) => (
            <li key={state.version}>
              {state.version}: <OutcomeBadge outcome={state.outcome} /> {sentenceOf(state)}
            </li>
          ))}
        </ul>
      </div>
      <Comparison states={states} columns={columns} />
      <details>
        <summary>Payload</summary>
        <Json label="Payload" value={event.payload} />
      </details>
    </>
  );
}

function sentenceOf({ outcome, changed, message, before, after }: State): string {
  if (message) return message;
  if (outcome !== 'FOLDED') return '';
  if (before == null && after != null) return 'The row is created.';
  if (before != null && after == null) return 'The row is deleted.';
  return changed.length === 0 ? 'Nothing changes.' : `Changes ${changed.join(', ')}.`;
}

function Comparison({ states, columns }: { readonly states: readonly State[]; readonly columns: readonly Column[] }) {
  return (
    <Scrollable class="scroll" label="The row before and after">
      <table class="comparison">
        <caption class="hidden">The row before and after the event, in each version</caption>
        <thead>
          <tr>
            <th rowSpan={2} scope="col">
              Column
            </th>
            {states.map(({ version }) => (
              <th key={version} colSpan={2} scope="colgroup">
                <a href={to(['versions', version])}>{version}</a>
              </th>
            ))}
          </tr>
          <tr>
            {states.flatMap(({ version }) => [
              <th key={`${version} before`} scope="col">
                before
              </th>,
              <th key={`${version} after`} scope="col">
                after
              </th>,
            ])}
          </tr>
        </thead>
        <tbody>
          {columns.map((column) => (
            <tr key={column.name}>
              <th scope="row">
                <code>{column.name}</code>
              </th>
              {states.flatMap((state) => cellsOf(column, state))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function cellsOf({ name, versions }: Column, { version, before, after, changed }: State) {
  const isThere = versions.includes(version);
  const isChanged = isThere && changed.includes(name);
  return [
    <td key={`${version} before`}>{isThere ? valueIn(before, name) : <Absent />}</td>,
    <td key={`${version} after`} class={isChanged ? 'changed' : undefined}>
      {isThere ? valueIn(after, name) : <Absent />}
      {isChanged && (
        <span class="mark">
          <Icon shape="diamond" /> changed
        </span>
      )}
    </td>,
  ];
}

function valueIn(row: unknown, name: string) {
  if (row === null || typeof row !== 'object') return <span class="quiet-text">no row</span>;
  const value: unknown = Reflect.get(row, name);
  return <code>{value === undefined ? '–' : plain(value)}</code>;
}

function Absent() {
  return <span class="quiet-text">no such column</span>;
}
