import { useEffect, useState } from 'preact/hooks';
import { type EventFilter, type EventLineFragment, EventsAppendedDocument, EventsDocument } from '../gql/graphql.ts';
import { Filter, type FilterField } from '../parts/form.tsx';
import { number, Time } from '../parts/format.tsx';
import { Badge } from '../parts/marks.tsx';
import { PagedTable, Table, type TableColumn } from '../parts/table.tsx';
import { go, to } from '../router.ts';
import { type Connection, keepSubscribed } from '../server/reconnecting.ts';
import { usePages } from '../server/use-query.ts';

const fields: readonly FilterField[] = [
  { name: 'stream', label: 'Stream', placeholder: 'shopping_cart/c1' },
  { name: 'types', label: 'Types', placeholder: 'ProductItemAdded, account.*' },
  { name: 'correlation', label: 'Correlation id' },
  { name: 'from', label: 'After position', type: 'number' },
  { name: 'upTo', label: 'Up to position', type: 'number' },
  { name: 'since', label: 'Since', type: 'datetime-local' },
  { name: 'until', label: 'Until', type: 'datetime-local' },
];

export function LogPage({ params }: { readonly params: URLSearchParams }) {
  const isLive = params.get('live') === '1';
  const values = Object.fromEntries(params);
  return (
    <>
      <h1>Log</h1>
      <Filter
        label="Search the log"
        fields={fields}
        values={params}
        onApply={(chosen) => go(to(['log'], { ...chosen, live: params.get('live') }))}
      >
        <button
          type="button"
          aria-pressed={isLive}
          onClick={() => go(to(['log'], { ...values, live: isLive ? undefined : 1 }))}
        >
          Live tail
        </button>
      </Filter>
      {isLive ? <Tail filter={filterOf(params)} /> : <Found params={params} />}
    </>
  );
}

function Found({ params }: { readonly params: URLSearchParams }) {
  const filter = filterOf(params);
  // From a place on, the log is read forward; otherwise what happened last is of interest.
  const order = filter.afterPosition || filter.since ? 'OLDEST_FIRST' : 'NEWEST_FIRST';
  const pages = usePages(EventsDocument, { filter, order }, ({ events }) => events);
  const searchedTo = pages.data?.events.searchedTo;
  return (
    <>
      <PagedTable
        caption="Events"
        columns={columns}
        pages={pages}
        keyOf={({ position }) => position}
        empty="No event matches."
      />
      {pages.hasNext && searchedTo && <p class="quiet-text">Searched to position {number(searchedTo)}.</p>}
    </>
  );
}

// More could not be read while they pass.
const mostEvents = 200;

function Tail({ filter }: { readonly filter: EventFilter }) {
  const [events, setEvents] = useState<readonly EventLineFragment[]>([]);
  const [connection, setConnection] = useState<Connection>('connecting');
  const [problem, setProblem] = useState<string>();
  const key = JSON.stringify(filter);
  // `key` stands for the filter
  useEffect(() => {
    setEvents([]);
    return keepSubscribed(
      EventsAppendedDocument,
      { filter },
      {
        onData: ({ eventsAppended }) =>
          setEvents((before) => [...eventsAppended.toReversed(), ...before].slice(0, mostEvents)),
        onConnection(state, error) {
          setConnection(state);
          setProblem(error?.message);
        },
      },
    );
  }, [key]);
  const [newest] = events;
  return (
    <>
      <p class="lead" role="status">
        {connection === 'live' ? (
          <Badge tone="good" shape="dot">
            waiting for new events
          </Badge>
        ) : (
          <Badge tone={connection === 'lost' ? 'bad' : 'quiet'} shape={connection === 'lost' ? 'cross' : 'ring'}>
            {connection === 'lost' ? 'connection lost, trying again' : (problem ?? connection)}
          </Badge>
        )}
      </p>
      <Table
        caption={newest ? `New events, the last at position ${number(newest.position)}` : 'New events'}
        columns={columns}
        items={events}
        keyOf={({ position }) => position}
        empty="No event has been appended since the tail began."
      />
    </>
  );
}

export const columns: readonly TableColumn<EventLineFragment>[] = [
  {
    title: 'Position',
    isName: true,
    isNumber: true,
    cell: ({ position }) => <a href={to(['log', position])}>{number(position)}</a>,
  },
  { title: 'Recorded', cell: ({ recordedAt }) => <Time at={recordedAt} /> },
  { title: 'Type', cell: ({ type }) => type },
  {
    title: 'Stream',
    cell: ({ family, streamId }) => (
      <a href={to(['log'], { stream: `${family}/${streamId}` })}>
        {family}/{streamId}
      </a>
    ),
  },
  { title: 'In stream', isNumber: true, isExtra: true, cell: ({ streamPosition }) => number(streamPosition) },
  {
    title: 'Correlation',
    isExtra: true,
    cell: ({ correlationId }) =>
      correlationId ? (
        <a href={to(['log'], { correlation: correlationId })}>
          <code>{correlationId.length > 13 ? `${correlationId.slice(0, 12)}…` : correlationId}</code>
        </a>
      ) : (
        '–'
      ),
  },
];

function filterOf(params: URLSearchParams): EventFilter {
  const text = (name: string) => params.get(name)?.trim() || undefined;
  const time = (name: string) => {
    const at = text(name);
    return at && new Date(at).toISOString();
  };
  const stream = text('stream');
  const slash = stream?.indexOf('/') ?? -1;
  return {
    family: stream && slash > 0 ? stream.slice(0, slash) : undefined,
    streamId: stream && slash > 0 ? stream.slice(slash + 1) : stream,
    types: text('types')
      ?.split(',')
      .map((type) => type.trim())
      .filter(Boolean),
    correlationId: text('correlation'),
    afterPosition: text('from'),
    upToPosition: text('upTo'),
    since: time('since'),
    until: time('until'),
  };
}
