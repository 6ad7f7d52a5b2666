import { EventDetailDocument, type EventDetailQuery } from '../gql/graphql.ts';
import { Figures, Json, Section } from '../parts/figures.tsx';
import { keyText, number, Time } from '../parts/format.tsx';
import { Notice } from '../parts/marks.tsx';
import { Problem } from '../parts/problem.tsx';
import { Loading, Table } from '../parts/table.tsx';
import { to } from '../router.ts';
import { useRights } from '../server/caller.ts';
import { useQuery } from '../server/use-query.ts';

type LogEvent = NonNullable<EventDetailQuery['event']>;

/** One event: what it says, where it came from, and the rows that it touched. */
export function EventPage({ position }: { readonly position: string }) {
  const mayRead = useRights().has('DATA');
  const { data, error, reload } = useQuery(EventDetailDocument, { position, data: mayRead });
  const event = data?.event;
  return (
    <>
      <p class="crumbs">
        <a href="#/log">Log</a>
      </p>
      <h1>Event {number(position)}</h1>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !event && <Notice tone="quiet">The log has no event at this position.</Notice>}
      {event && <Details event={event} mayRead={mayRead} />}
    </>
  );
}

function Details({ event, mayRead }: { readonly event: LogEvent; readonly mayRead: boolean }) {
  const { family, streamId, correlationId, causationId } = event;
  return (
    <>
      <Figures
        items={[
          { name: 'Type', value: event.type, note: `payload version ${event.payloadVersion}` },
          {
            name: 'Stream',
            value: (
              <a href={to(['log'], { stream: `${family}/${streamId}` })}>
                {family}/{streamId}
              </a>
            ),
            note: `number ${number(event.streamPosition)} in it`,
          },
          { name: 'Recorded', value: <Time at={event.recordedAt} /> },
          { name: 'Id', value: <code>{event.id}</code> },
          !!correlationId && {
            name: 'Correlation',
            value: (
              <a href={to(['log'], { correlation: correlationId })}>
                <code>{correlationId}</code>
              </a>
            ),
          },
          !!causationId && { name: 'Causation', value: <code>{causationId}</code> },
        ]}
      />
      {!mayRead && (
        <Notice tone="quiet">Your token lacks the right DATA, so payload, metadata and rows are not shown.</Notice>
      )}
      {event.rows && (
        <Section title="Rows that it touched">
          <Table
            caption="Rows that it touched"
            columns={[
              {
                title: 'Version',
                isName: true,
                cell: ({ version }) => <a href={to(['versions', version])}>{version}</a>,
              },
              { title: 'Row', cell: ({ key }) => <code>{keyText(key)}</code> },
              {
                title: 'Step through it',
                cell: ({ projection, key, hasHistory }) =>
                  hasHistory ? (
                    <a href={to(['rows'], { projection, key: JSON.stringify(key), at: event.position })}>
                      Show before and after
                    </a>
                  ) : (
                    'not possible for this version'
                  ),
              },
            ]}
            items={event.rows}
            keyOf={({ version, key }) => `${version} ${JSON.stringify(key)}`}
            empty="No declared version handles it."
          />
        </Section>
      )}
      {mayRead && (
        <>
          <Section title="Payload">
            <Json label="Payload" value={event.payload} />
          </Section>
          <Section title="Metadata">
            <Json label="Metadata" value={event.metadata} />
          </Section>
        </>
      )}
      <nav class="pager" aria-label="Neighbours in the log">
        <a class="button" href={to(['log'], { upTo: event.position })}>
          Events up to here
        </a>
        <a class="button" href={to(['log'], { from: event.position })}>
          Events after it
        </a>
      </nav>
    </>
  );
}
