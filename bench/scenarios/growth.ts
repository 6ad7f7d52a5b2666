import { createLogOfSize, type LogOfSize } from '../log-of-size.ts';
import { inTurn, median } from '../rounds.ts';
import type { Result, Scenario } from '../scenario.ts';

type Measure = 'build' | 'read' | 'byId' | 'list' | 'append' | 'tail';

const units: Readonly<Record<Measure, { readonly name: string; readonly unit: string }>> = {
  build: { name: 'first-build', unit: 'µs an event' },
  read: { name: 'read-log', unit: 'µs an event' },
  byId: { name: 'by-id', unit: 'µs an answer' },
  list: { name: 'list-of-20', unit: 'µs an answer' },
  append: { name: 'append-1x32', unit: 'µs an append' },
  tail: { name: 'append-to-subscriber', unit: 'ms' },
};
const beforeServing: readonly Measure[] = ['build'];
// Appends last: the other measures should find logs of the stated lengths.
const whileServing: readonly Measure[] = ['read', 'byId', 'list', 'append', 'tail'];

/**
 * The same operations on logs of 10,000 to 5,000,000 events: none may cost more on a longer log. The logs take turns within each round, because
 * other load on the machine should affect all of them.
 */
export const growth: Scenario = {
  name: 'growth',
  async run({ server, quick }) {
    const sizes = quick ? [10_000, 100_000] : [10_000, 100_000, 1_000_000, 5_000_000];
    const logs: LogOfSize[] = [];
    for (const events of sizes) logs.push(await createLogOfSize(server, events, quick ? 250 : 3000));
    const rounds = quick ? 2 : 3;
    const results: Result[] = [];
    const measure = async (name: Measure) => {
      const figures = await inTurn(rounds, Object.fromEntries(logs.map((log) => [String(log.events), log[name]])));
      results.push(
        ...resultsOf(
          name,
          sizes.map((events) => ({ events, costs: figures[String(events)] ?? [] })),
        ),
      );
    };
    for (const name of beforeServing) await measure(name);
    for (const log of logs) await log.serve();
    for (const name of whileServing) await measure(name);
    for (const log of logs) await log.close();
    return results;
  },
};

interface CostsOfSize {
  readonly events: number;
  readonly costs: readonly number[];
}

/**
 * Compared with the cheapest shorter log, which is not always the shortest: there, the fixed cost of a first build is spread over few events,
 * and would hide a growing cost.
 */
function resultsOf(measure: Measure, ofSizes: readonly CostsOfSize[]): Result[] {
  const { name, unit } = units[measure];
  return ofSizes.map(({ events, costs }, index) => {
    const shorter = ofSizes.slice(0, index).sort((a, b) => median(a.costs) - median(b.costs));
    const [base] = shorter;
    return {
      scenario: `growth-${name}-${events / 1000}k`,
      unit,
      better: 'less',
      refold: costs,
      ...(base ? { limit: base.costs, limitName: 'a shorter log' } : {}),
      target: base ? { toLimit: 1.3 } : {},
      growth: { measure: name, events },
    };
  });
}
