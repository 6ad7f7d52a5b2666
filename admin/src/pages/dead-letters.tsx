import { useEffect, useRef, useState } from 'preact/hooks';
import { ActionButton } from '../actions/action-button.tsx';
import { letterAction } from '../actions/letter-actions.ts';
import { type DeadLetterFilter, DeadLettersDocument, type DeadLettersQuery } from '../gql/graphql.ts';
import { Section } from '../parts/figures.tsx';
import { Filter } from '../parts/form.tsx';
import { Ago, keyText, number } from '../parts/format.tsx';
import { Badge } from '../parts/marks.tsx';
import { PagedTable } from '../parts/table.tsx';
import { go, to } from '../router.ts';
import { live } from '../server/overview.ts';
import { useStore } from '../server/store.ts';
import { usePages } from '../server/use-query.ts';
import { LetterDialog } from './dead-letter.tsx';
import { LetterGroups } from './dead-letter-groups.tsx';

export type Letter = DeadLettersQuery['deadLetters']['items'][number];

export function DeadLettersPage({ params }: { readonly params: URLSearchParams }) {
  const { versions, reactors } = useStore(live);
  const filter = filterOf(params);
  const view = params.get('view') === 'groups' ? 'groups' : 'list';
  const values = Object.fromEntries(params);
  const names = [
    ...[...versions.values()].filter(({ deadLetters }) => deadLetters.value > 0).map(({ id }) => id),
    ...[...reactors.values()].filter(({ deadLetters }) => deadLetters.value > 0).map(({ name }) => name),
  ];
  return (
    <>
      <h1>Dead letters</h1>
      <p class="lead">Events that could not be folded or handled, and events that wait behind one.</p>
      <Filter
        label="Search dead letters"
        fields={[
          { name: 'of', label: 'Version or reactor', suggestions: names },
          { name: 'eventType', label: 'Event type' },
          { name: 'streamId', label: 'Stream' },
          { name: 'error', label: 'Error' },
          {
            name: 'kind',
            label: 'Which',
            choices: [
              ['', 'all'],
              ['failed', 'those that failed'],
              ['waiting', 'those that wait behind one'],
            ],
          },
        ]}
        values={params}
        onApply={(chosen) => go(to(['dead-letters'], { ...chosen, view: params.get('view'), by: params.get('by') }))}
      />
      {filter.stack && (
        <p class="quiet-text">
          Only errors that were thrown at <code>{filter.stack.split('\n')[0]?.trim()}</code>{' '}
          <a href={to(['dead-letters'], { ...values, stack: undefined })}>Show all</a>
        </p>
      )}
      <nav class="tabs" aria-label="Views of dead letters">
        <a
          href={to(['dead-letters'], { ...values, view: undefined })}
          aria-current={view === 'list' ? 'page' : undefined}
        >
          List
        </a>
        <a
          href={to(['dead-letters'], { ...values, view: 'groups' })}
          aria-current={view === 'groups' ? 'page' : undefined}
        >
          Groups
        </a>
      </nav>
      {view === 'groups' ? <LetterGroups filter={filter} params={params} /> : <LetterList filter={filter} />}
    </>
  );
}

export function filterOf(params: URLSearchParams): DeadLetterFilter {
  const text = (name: string) => params.get(name) || undefined;
  const kind = params.get('kind');
  return {
    of: text('of'),
    eventType: text('eventType'),
    streamId: text('streamId'),
    error: text('error'),
    stack: text('stack'),
    failed: kind === 'failed' ? true : kind === 'waiting' ? false : undefined,
  };
}

function LetterList({ filter }: { readonly filter: DeadLetterFilter }) {
  const pages = usePages(DeadLettersDocument, { filter }, ({ deadLetters }) => deadLetters);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [opened, setOpened] = useState<Letter>();
  const { reload } = pages;
  useReloadOnChange(reload);
  const chosen = pages.items.filter(({ id }) => selected.has(id)).map(({ id }) => id);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const done = () => {
    setSelected(new Set());
    reload();
  };
  const toggle = (id: string, isChosen: boolean) => {
    const next = new Set(selected);
    if (isChosen) next.add(id);
    else next.delete(id);
    setSelected(next);
  };
  return (
    <Section title="List">
      <LetterActions
        chosen={chosen}
        filter={filter}
        isFiltered={isFiltered}
        isEmpty={pages.items.length === 0}
        onDone={done}
      />
      {pages.items.length > 0 && (
        <label class="check">
          <input
            type="checkbox"
            checked={chosen.length === pages.items.length}
            onChange={({ currentTarget }) =>
              setSelected(new Set(currentTarget.checked ? pages.items.map(({ id }) => id) : []))
            }
          />
          Select all of this page
        </label>
      )}
      <PagedTable
        caption="Dead letters"
        columns={[
          {
            title: 'Selected',
            cell: ({ id, position, of }) => (
              <input
                type="checkbox"
                aria-label={`Select the dead letter at position ${position} of ${of}`}
                checked={selected.has(id)}
                onChange={({ currentTarget }) => toggle(id, currentTarget.checked)}
              />
            ),
          },
          {
            title: 'Event',
            isName: true,
            cell: (letter) => (
              <button type="button" class="link" onClick={() => setOpened(letter)}>
                {number(letter.position)} {letter.eventType}
              </button>
            ),
          },
          { title: 'Error', isText: true, cell: Failure },
          {
            title: 'Of',
            cell: ({ of, isReactor }) => <a href={to([isReactor ? 'reactors' : 'versions', of])}>{of}</a>,
          },
          { title: 'Key', cell: ({ key }) => (key == null ? '–' : <code>{keyText(key)}</code>) },
          { title: 'Stream', isExtra: true, cell: ({ streamId }) => streamId },
          { title: 'Attempts', isNumber: true, isExtra: true, cell: ({ attempts }) => number(attempts) },
          { title: 'When', cell: ({ at }) => <Ago at={at} /> },
        ]}
        pages={pages}
        keyOf={({ id }) => id}
        empty={isFiltered ? 'No dead letter matches.' : 'There is no dead letter.'}
      />
      {opened && <LetterDialog letter={opened} onDone={done} onClose={() => setOpened(undefined)} />}
    </Section>
  );
}

/** Reads the list again when their number has changed: the owner of a reactor retries and discards in the background. */
function useReloadOnChange(reload: () => void): void {
  const amount = useStore(live).overview?.deadLetters.value;
  const shown = useRef(amount);
  useEffect(() => {
    if (amount === shown.current) return;
    shown.current = amount;
    reload();
  }, [amount]);
}

function Failure({ error, requested }: Letter) {
  return (
    <>
      {error ? (
        error.message
      ) : (
        <Badge tone="quiet" shape="bars">
          waits behind an earlier one
        </Badge>
      )}
      {requested && <small>{requested} requested</small>}
    </>
  );
}

interface LetterActionsProps {
  readonly chosen: readonly string[];
  readonly filter: DeadLetterFilter;
  readonly isFiltered: boolean;
  readonly isEmpty: boolean;
  readonly onDone: () => void;
}

function LetterActions({ chosen, filter, isFiltered, isEmpty, onDone }: LetterActionsProps) {
  const all = isFiltered ? 'all that match' : 'all';
  return (
    <fieldset class="actions" aria-label="Actions on dead letters">
      {(['RETRY_DEAD_LETTERS', 'DISCARD_DEAD_LETTERS'] as const).map((name) => (
        <ActionButton
          key={name}
          action={letterAction(name, `selected (${chosen.length})`, { ids: chosen })}
          isDisabled={chosen.length === 0}
          onDone={onDone}
        />
      ))}
      {(['RETRY_DEAD_LETTERS', 'DISCARD_DEAD_LETTERS'] as const).map((name) => (
        <ActionButton key={name} action={letterAction(name, all, { filter })} isDisabled={isEmpty} onDone={onDone} />
      ))}
    </fieldset>
  );
}
