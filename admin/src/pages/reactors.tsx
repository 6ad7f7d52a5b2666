import { Section } from '../parts/figures.tsx';
import { count, number, Time } from '../parts/format.tsx';
import { ProcessorBadge } from '../parts/marks.tsx';
import { Loading, Table } from '../parts/table.tsx';
import { to } from '../router.ts';
import { live } from '../server/overview.ts';
import { useStore } from '../server/store.ts';

const order = ['stopped', 'paused', 'idle', 'running'];

export function ReactorsPage() {
  const { reactors, overview } = useStore(live);
  const sorted = [...reactors.values()].sort(
    (a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.name.localeCompare(b.name),
  );
  return (
    <>
      <h1>Reactors</h1>
      <Section title="Reactors">
        {!overview ? (
          <Loading />
        ) : (
          <Table
            caption="Reactors"
            columns={[
              {
                title: 'Reactor',
                isName: true,
                cell: ({ name, error }) => (
                  <>
                    <a href={to(['reactors', name])}>{name}</a>
                    {error && <small class="bad-text">{error.message}</small>}
                  </>
                ),
              },
              { title: 'State', cell: ({ state }) => <ProcessorBadge state={state} /> },
              { title: 'Position', isNumber: true, cell: ({ position }) => number(position) },
              { title: 'Lag', isNumber: true, cell: ({ lag }) => number(lag) },
              { title: 'Handled', isNumber: true, cell: ({ handled }) => number(handled) },
              {
                title: 'Dead letters',
                isNumber: true,
                cell: ({ name, deadLetters }) =>
                  deadLetters.value > 0 ? <a href={to(['dead-letters'], { of: name })}>{count(deadLetters)}</a> : '0',
              },
              { title: 'Waiting', isNumber: true, cell: ({ waiting }) => count(waiting) },
              {
                title: 'Next wake-up',
                isExtra: true,
                cell: ({ nextDue }) => (nextDue ? <Time at={nextDue} /> : '–'),
              },
              { title: 'Owner', isExtra: true, cell: ({ owner }) => owner ?? '–' },
            ]}
            items={sorted}
            keyOf={({ name }) => name}
            rowClass={({ state }) => (state === 'stopped' ? 'urgent' : undefined)}
            empty="No reactor is declared."
          />
        )}
      </Section>
    </>
  );
}
