import { ActionButton } from '../actions/action-button.tsx';
import { letterAction } from '../actions/letter-actions.ts';
import {
  type DeadLetterFilter,
  type DeadLetterGrouping,
  DeadLetterGroupsDocument,
  type DeadLetterGroupsQuery,
} from '../gql/graphql.ts';
import { Section } from '../parts/figures.tsx';
import { Ago, number } from '../parts/format.tsx';
import { Problem } from '../parts/problem.tsx';
import { StoresAway } from '../parts/stores.tsx';
import { Loading, Pager, Table, type TableColumn } from '../parts/table.tsx';
import { go, to } from '../router.ts';
import { usePages } from '../server/use-query.ts';

type Group = DeadLetterGroupsQuery['deadLetterGroups']['items'][number];

const groupings: readonly (readonly [DeadLetterGrouping, string])[] = [
  ['ERROR', 'error'],
  ['STACK', 'stack'],
  ['EVENT', 'event type'],
  ['STREAM', 'stream'],
  ['OF', 'version or reactor'],
];

interface LetterGroupsProps {
  readonly filter: DeadLetterFilter;
  readonly params: URLSearchParams;
}

/** Dead letters, counted by what they have in common. */
export function LetterGroups({ filter, params }: LetterGroupsProps) {
  const by = chosenGroupings(params);
  const pages = usePages(DeadLetterGroupsDocument, { by: [...by], filter }, ({ deadLetterGroups }) => deadLetterGroups);
  const choose = (grouping: DeadLetterGrouping, isChosen: boolean) => {
    const next = groupings.map(([each]) => each).filter((each) => (each === grouping ? isChosen : by.includes(each)));
    go(to(['dead-letters'], { ...Object.fromEntries(params), by: next.join(',') }));
  };
  const visited = pages.data?.deadLetterGroups.visited ?? 0;
  return (
    <Section title="Groups">
      <fieldset class="choices">
        <legend>Group by</legend>
        {groupings.map(([grouping, text]) => (
          <label key={grouping} class="check">
            <input
              type="checkbox"
              checked={by.includes(grouping)}
              disabled={by.length === 1 && by.includes(grouping)}
              onChange={({ currentTarget }) => choose(grouping, currentTarget.checked)}
            />
            {text}
          </label>
        ))}
      </fieldset>
      {pages.error && <Problem error={pages.error} retry={pages.reload} />}
      {!pages.data && pages.isLoading && <Loading />}
      {pages.data && (
        <>
          <p class="quiet-text" role="status">
            {number(visited)} dead letters counted{pages.hasNext || pages.page > 1 ? ' in this part' : ''}.
          </p>
          <StoresAway names={pages.storesAway} />
          <Table
            caption="Groups of dead letters"
            columns={columnsFor(by, filter, pages.reload)}
            items={pages.items}
            keyOf={(group) => JSON.stringify([group.error, group.stack, group.eventType, group.streamId, group.of])}
            empty="There is no dead letter."
          />
          <Pager {...pages} name="groups" />
        </>
      )}
    </Section>
  );
}

function chosenGroupings(params: URLSearchParams): readonly DeadLetterGrouping[] {
  const named = params.get('by')?.split(',') ?? [];
  const chosen = groupings.map(([grouping]) => grouping).filter((grouping) => named.includes(grouping));
  return chosen.length > 0 ? chosen : ['ERROR', 'EVENT'];
}

function columnsFor(
  by: readonly DeadLetterGrouping[],
  filter: DeadLetterFilter,
  onDone: () => void,
): readonly TableColumn<Group>[] {
  const has = (grouping: DeadLetterGrouping, column: TableColumn<Group>) => (by.includes(grouping) ? [column] : []);
  return [
    { title: 'Dead letters', isNumber: true, cell: ({ count }) => number(count) },
    ...has('ERROR', { title: 'Error', isText: true, cell: ({ error }) => error ?? 'They wait behind another.' }),
    ...has('STACK', { title: 'Stack', isText: true, cell: ({ stack }) => <Frames stack={stack} /> }),
    ...has('EVENT', { title: 'Event type', cell: ({ eventType }) => eventType ?? '–' }),
    ...has('STREAM', { title: 'Stream', cell: ({ streamId }) => streamId ?? '–' }),
    ...has('OF', { title: 'Of', cell: ({ of }) => of ?? '–' }),
    { title: 'Of these wait', isNumber: true, cell: ({ waiting }) => number(waiting) },
    { title: 'First position', isNumber: true, cell: ({ firstPosition }) => number(firstPosition) },
    { title: 'Last', cell: ({ lastAt }) => <Ago at={lastAt} /> },
    {
      title: 'Actions',
      cell: (group) => {
        const matching = filterFor(group, by, filter);
        return (
          <span class="actions">
            <a class="button" href={to(['dead-letters'], addressOf(matching))}>
              Show
            </a>
            {(['RETRY_DEAD_LETTERS', 'DISCARD_DEAD_LETTERS'] as const).map((name) => (
              <ActionButton
                key={name}
                action={letterAction(name, '', { filter: matching }, `the group of ${number(group.count)}`)}
                onDone={onDone}
              />
            ))}
          </span>
        );
      },
    },
  ];
}

/** Where the error was thrown; the other frames on demand. */
function Frames({ stack }: { readonly stack: string | null | undefined }) {
  if (!stack) return <>–</>;
  const [first = '', ...others] = stack.split('\n').map((line) => line.trim());
  if (others.length === 0) return <code>{first}</code>;
  return (
    <details>
      <summary>
        <code>{first}</code>
      </summary>
      <pre>{others.join('\n')}</pre>
    </details>
  );
}

function filterFor(group: Group, by: readonly DeadLetterGrouping[], filter: DeadLetterFilter): DeadLetterFilter {
  const isWaiting = group.waiting === group.count && (by.includes('ERROR') || by.includes('STACK'));
  return {
    ...filter,
    error: group.error ?? filter.error,
    stack: group.stack ?? filter.stack,
    eventType: group.eventType ?? filter.eventType,
    streamId: group.streamId ?? filter.streamId,
    of: group.of ?? filter.of,
    failed: isWaiting ? false : filter.failed,
  };
}

function addressOf({ of, eventType, streamId, error, stack, failed }: DeadLetterFilter) {
  return {
    of,
    eventType,
    streamId,
    error,
    stack,
    kind: failed === true ? 'failed' : failed === false ? 'waiting' : undefined,
  };
}
