import { createPoller } from './poller.ts';

/** A periodic task. */
export interface PeriodicTask {
  /** Runs the task now, or once more right after the current run. */
  soon(): void;
  /** Aborts the current run, and resolves when it has ended. */
  stop(): Promise<void>;
}

/** Runs a task now and after every interval. Runs never overlap. `work` must end soon after the signal aborts. */
export function startPeriodicTask(
  milliseconds: number,
  work: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
): PeriodicTask {
  const poller = createPoller({
    ...{ min: milliseconds, max: milliseconds, step: 0, onError },
    async poll(signal) {
      await work(signal);
      return 'idle';
    },
  });
  poller.wake();
  return { soon: poller.wake, stop: poller.stop };
}
