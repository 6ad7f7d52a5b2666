import { RefoldError } from '../../errors.ts';
import { beginning } from '../../events/global-position.ts';
import type { ProcessorClaim } from '../../store/processors/checkpoints.ts';
import type { MaintainedProcessor, MaintainedUnit } from './maintained-unit.ts';

/**
 * A processor that does nothing, for a unit whose checkpoint belongs to a history that is gone. To continue would leave out events, or keep
 * rows of events that no longer exist. It stays stopped, and its error tells the operator why and what to do.
 */
export function lostProcessor({ id }: MaintainedUnit, claim: ProcessorClaim): MaintainedProcessor {
  const { kind, name, version, checkpoint, lost } = claim;
  const found =
    checkpoint === beginning
      ? 'the events that it had folded are not in the log any more'
      : lost === 'beyond'
        ? `its checkpoint ${checkpoint} is beyond the end of the log`
        : `the log holds other events up to its checkpoint ${checkpoint} than those that it had taken in`;
  const wayOut = {
    processor: `Its rows are served as they are and not maintained. Rebuild them: refold rebuild ${name}@${version}.`,
    rebuild: `Cancel this rebuild and start another: refold rebuild ${name}@${version} --cancel.`,
    reactor: `Some reactions may be of events that are gone. Set the position from which it continues: refold reactor rewind ${name}.`,
  }[kind];
  const failure = new RefoldError(
    'HISTORY_CHANGED',
    `${id}: ${found}, as after a fail-over that lost events or a restore. ${wayOut}`,
    { name, version, position: checkpoint.toString() },
  );
  return {
    id,
    filter: [],
    checkpoint,
    failure,
    process: async () => 'stop',
    flush: async () => {},
  };
}
