import type { AuditedStep } from '../audit.ts';
import type { Cut } from '../ledger.ts';
import type { Judge } from './judge.ts';

export const checkpointsAreFenced: Judge = {
  name: 'checkpoints-are-fenced',
  promise:
    'each checkpoint continues from where it was, goes back only for an operator or after a lost tail, and only the owner of its epoch moves it',
  async differences({ steps, events, ledger }) {
    const head = events.at(-1)?.position ?? 0n;
    // A version may have a copy in each store.
    const processors = Map.groupBy(
      steps,
      ({ store, name, version, partition }) => `${name}@${version}/${partition} in ${store}`,
    );
    return [...processors].flatMap(([processor, ofProcessor]) =>
      differencesOf(processor, ofProcessor, head, ledger.cuts),
    );
  },
};

function differencesOf(
  processor: string,
  steps: readonly AuditedStep[],
  head: bigint,
  cuts: readonly Cut[],
): readonly string[] {
  const found: string[] = [];
  let at = { checkpoint: 0n, epoch: 0n };
  let writerOfEpoch: string | undefined;
  for (const step of steps) {
    const { number, checkpoint, checkpointBefore, epoch, epochBefore, writer } = step;
    const where = `${processor}, step ${number} by ${writer}`;
    if (checkpointBefore !== at.checkpoint || epochBefore !== at.epoch)
      found.push(
        `${where}: continued from ${checkpointBefore} of epoch ${epochBefore}, but was at ${at.checkpoint} of ${at.epoch}`,
      );
    // An operator may start a version over, under a new epoch.
    const beginsAnew = writer === 'chaos' && epoch > epochBefore;
    // What a store holds of lost events is not continued.
    const isHeld = checkpoint === 0n && cuts.some(({ from }) => step.at >= from);
    if ((checkpoint < checkpointBefore && !beginsAnew && !isHeld) || epoch < epochBefore)
      found.push(`${where}: went back from ${checkpointBefore} of epoch ${epochBefore} to ${checkpoint} of ${epoch}`);
    // A store keeps what it did before the log lost it.
    const isLost = cuts.some(({ to }) => step.at <= to);
    if (checkpoint > head && !isLost) found.push(`${where}: went to ${checkpoint}, beyond the head ${head}`);
    // A claim names its owner. The end of a rebuild moves both checkpoint and epoch, and has no owner.
    if (epoch !== epochBefore) writerOfEpoch = step.status === 'running' ? writer : undefined;
    else if (writer !== writerOfEpoch)
      found.push(`${where}: wrote a batch in epoch ${epoch}, which is ${writerOfEpoch ?? 'nobody'}’s`);
    at = { checkpoint, epoch };
  }
  return found;
}
