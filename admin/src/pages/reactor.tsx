import { useEffect, useState } from 'preact/hooks';
import { ActionButton } from '../actions/action-button.tsx';
import { cancelWaitingEvent, reactorAction, withdrawVersion } from '../actions/reactor-actions.ts';
import { ReactorDetailDocument, type ReactorDetailQuery, ReactorHistoryDocument } from '../gql/graphql.ts';
import { Figures, Section } from '../parts/figures.tsx';
import { Ago, count, counted, number, Time } from '../parts/format.tsx';
import { Notice, ProcessorBadge } from '../parts/marks.tsx';
import { Problem } from '../parts/problem.tsx';
import { Loading, PagedTable, Pager, Table } from '../parts/table.tsx';
import { to } from '../router.ts';
import { live } from '../server/overview.ts';
import { useStore } from '../server/store.ts';
import { usePages, useQuery } from '../server/use-query.ts';
import { historyColumns } from './audit-list.tsx';

type Reactor = NonNullable<ReactorDetailQuery['reactor']>;

export function ReactorPage({ name }: { readonly name: string }) {
  const { data, error, reload } = useQuery(ReactorDetailDocument, { name });
  const line = useStore(live).reactors.get(name);
  // `line` is another object after each change
  useEffect(() => {
    const timer = setTimeout(reload, 1000);
    return () => clearTimeout(timer);
  }, [line]);
  const reactor = data?.reactor;
  return (
    <>
      <p class="crumbs">
        <a href="#/reactors">Reactors</a>
      </p>
      <div class="title">
        <h1>{name}</h1>
        {reactor && <ProcessorBadge state={reactor.state} />}
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !reactor && <Notice tone="quiet">There is no reactor of this name.</Notice>}
      {reactor && <Details reactor={reactor} onDone={reload} />}
    </>
  );
}

interface DetailsProps {
  readonly reactor: Reactor;
  readonly onDone: () => void;
}

function Details({ reactor, onDone }: DetailsProps) {
  const { name, error, deadLetters } = reactor;
  const stoppedAt = String(BigInt(reactor.position) + 1n);
  return (
    <>
      <div class="alerts">
        {!reactor.isDeclared && <Notice tone="quiet">This process does not declare it.</Notice>}
        {error && (
          <Notice tone="bad" title="It has stopped.">
            {error.message} (<Ago at={error.at} />)
          </Notice>
        )}
        {deadLetters.value > 0 && (
          <Notice tone="warn">
            <a href={to(['dead-letters'], { of: name })}>{counted(deadLetters, 'dead letter')}</a>
          </Notice>
        )}
      </div>
      <fieldset class="actions" aria-label={`Actions on ${name}`}>
        {reactor.actions.map((action) => (
          <ActionButton
            key={action}
            action={reactorAction(action, name, action === 'SKIP_REACTOR' ? stoppedAt : reactor.position)}
            onDone={onDone}
          />
        ))}
      </fieldset>
      <Figures
        items={[
          { name: 'Position', value: number(reactor.position), note: `head ${number(reactor.head)}` },
          { name: 'Lag', value: number(reactor.lag), note: 'positions' },
          { name: 'Handled', value: number(reactor.handled) },
          { name: 'Skipped', value: number(reactor.skipped) },
          { name: 'Waiting', value: count(reactor.waiting) },
          { name: 'Owner', value: reactor.owner ?? 'nobody' },
        ]}
      />
      <Versions reactor={reactor} onDone={onDone} />
      <Waiting reactor={reactor} onDone={onDone} />
      <History name={name} />
    </>
  );
}

function Versions({ reactor: { name, versions, actions }, onDone }: DetailsProps) {
  const mayWithdraw = actions.includes('WITHDRAW_REACTOR_VERSION');
  return (
    <Section title="Versions">
      <Table
        caption={`Versions of ${name}`}
        columns={[
          { title: 'Version', isName: true, cell: (version) => version.number },
          { title: 'Handles events after', isNumber: true, cell: ({ after }) => number(after) },
          { title: 'Up to', isNumber: true, cell: ({ upTo }) => (upTo ? number(upTo) : 'the newest') },
          { title: 'Under way', isNumber: true, cell: ({ underWay }) => count(underWay) },
          { title: 'Needed', cell: ({ isNeeded }) => (isNeeded ? 'yes' : 'no') },
          {
            title: 'Actions',
            cell: (version) =>
              mayWithdraw && <ActionButton action={withdrawVersion(name, version.number)} onDone={onDone} />,
          },
        ]}
        items={versions}
        keyOf={(version) => String(version.number)}
        empty="It has no versions."
      />
    </Section>
  );
}

const pageSize = 25;

function Waiting({ reactor: { name, waitingEvents, actions }, onDone }: DetailsProps) {
  const [page, setPage] = useState(1);
  const shown = Math.min(page, Math.max(Math.ceil(waitingEvents.length / pageSize), 1));
  const mayCancel = actions.includes('CANCEL_WAITING_EVENT');
  return (
    <Section title="Waiting events">
      <Table
        caption={`Events whose handlers of ${name} wait`}
        columns={[
          {
            title: 'Event',
            isName: true,
            cell: ({ position }) => <a href={to(['log', position])}>{number(position)}</a>,
          },
          { title: 'Type', cell: ({ eventType }) => eventType },
          { title: 'Stream', cell: ({ streamId }) => streamId },
          { title: 'Step', cell: ({ step }) => step },
          {
            title: 'Waits for',
            cell: ({ awaits, due, awaitedKey, isWoken }) => (
              <>
                {awaits.join(' or ') || 'a time'}
                {awaitedKey && <small>{awaitedKey}</small>}
                {due && (
                  <small>
                    until <Time at={due} />
                  </small>
                )}
                {isWoken && <small>woken</small>}
              </>
            ),
          },
          { title: 'Since', cell: ({ since }) => <Ago at={since} /> },
          {
            title: 'Actions',
            cell: ({ position }) =>
              mayCancel && <ActionButton action={cancelWaitingEvent(name, position)} onDone={onDone} />,
          },
        ]}
        items={waitingEvents.slice((shown - 1) * pageSize, shown * pageSize)}
        keyOf={({ position, step }) => `${position} ${step}`}
        empty="No event waits."
      />
      <Pager
        name="waiting events"
        page={shown}
        hasNext={shown * pageSize < waitingEvents.length}
        forward={() => setPage(shown + 1)}
        back={() => setPage(shown - 1)}
      />
    </Section>
  );
}

function History({ name }: { readonly name: string }) {
  const pages = usePages(ReactorHistoryDocument, { name }, ({ reactor }) => reactor?.history);
  return (
    <Section title="History">
      <PagedTable
        caption={`History of ${name}`}
        columns={historyColumns}
        pages={pages}
        keyOf={({ id }) => id}
        empty="No operator has done anything with it."
      />
    </Section>
  );
}
