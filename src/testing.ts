export type { Projected } from './testing/given-events.ts';
export { givenEvents } from './testing/given-events.ts';
export type { Decision, DecisionOptions } from './testing/given-stream.ts';
export { givenStream } from './testing/given-stream.ts';
export type { InMemoryAppend, InMemoryLog } from './testing/in-memory-log.ts';
export { createInMemoryLog } from './testing/in-memory-log.ts';
export { untilCaughtUp } from './testing/until-caught-up.ts';
