import { answersAreOfTheLog } from './answers-are-of-the-log.ts';
import { answersAreWhole } from './answers-are-whole.ts';
import { checkpointsAreFenced } from './checkpoints-are-fenced.ts';
import { deadLettersAreThoseExpected } from './dead-letters-are-those-expected.ts';
import { errorsAreTrue } from './errors-are-true.ts';
import { failOverIsBounded } from './fail-over-is-bounded.ts';
import { feedsAreFolds } from './feeds-are-folds.ts';
import { heldAnswersSaySo } from './held-answers-say-so.ts';
import { heldStreamsStopNothingElse } from './held-streams-stop-nothing-else.ts';
import type { Judge } from './judge.ts';
import { logIsLedger } from './log-is-ledger.ts';
import { noTableIsLeftOver } from './no-table-is-left-over.ts';
import { positionsAreMonotonic } from './positions-are-monotonic.ts';
import { reactionsAreComplete } from './reactions-are-complete.ts';
import { registryIsWhole } from './registry-is-whole.ts';
import { slowEventsAreOnlySlow } from './slow-events-are-only-slow.ts';
import { storeOutagesStopNothingElse } from './store-outages-stop-nothing-else.ts';
import { storesCatchUp } from './stores-catch-up.ts';
import { streamsHaveNoGaps } from './streams-have-no-gaps.ts';
import { tablesAreFolds } from './tables-are-folds.ts';
import { valuesHaveOneOwner } from './values-have-one-owner.ts';
import { writesAreRead } from './writes-are-read.ts';

export const judges: readonly Judge[] = [
  logIsLedger,
  streamsHaveNoGaps,
  tablesAreFolds,
  deadLettersAreThoseExpected,
  checkpointsAreFenced,
  reactionsAreComplete,
  registryIsWhole,
  noTableIsLeftOver,
  failOverIsBounded,
  storeOutagesStopNothingElse,
  heldStreamsStopNothingElse,
  valuesHaveOneOwner,
  heldAnswersSaySo,
  slowEventsAreOnlySlow,
  storesCatchUp,
  writesAreRead,
  positionsAreMonotonic,
  answersAreWhole,
  answersAreOfTheLog,
  feedsAreFolds,
  errorsAreTrue,
];
