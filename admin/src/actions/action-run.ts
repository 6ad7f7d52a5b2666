import { useEffect, useRef, useState } from 'preact/hooks';
import { type ActionInput, PreviewDocument, type PreviewQuery, RunDocument, type RunMutation } from '../gql/graphql.ts';
import { type ApiError, request } from '../server/api.ts';
import { apiError } from '../server/use-query.ts';
import type { Action, Values } from './action.ts';

export type ActionPreview = PreviewQuery['preview'];
export type ActionOutcome = RunMutation['run'];

/** Where a dialog is: it shows the preview, runs, or shows what was done. */
export type ActionPhase =
  | { readonly is: 'previewed' }
  | { readonly is: 'running'; readonly done: readonly ActionOutcome[] }
  | { readonly is: 'done'; readonly done: readonly ActionOutcome[]; readonly wasStopped: boolean };

export interface ActionRun {
  readonly values: Values;
  setValues(values: Values): void;
  readonly preview: ActionPreview | undefined;
  readonly isPreviewing: boolean;
  readonly error: ApiError | undefined;
  readonly phase: ActionPhase;
  run(reason: string): Promise<void>;
  /** Ends a run that continues, after its present step. */
  stop(): void;
}

// In milliseconds: while somebody types, each key would ask for a preview.
const typingMs = 250;

/** The state of an action from its first preview to its outcome. */
export function useActionRun(action: Action): ActionRun {
  const [values, setValues] = useState(action.initial);
  const [preview, setPreview] = useState<ActionPreview>();
  const [isPreviewing, setPreviewing] = useState(true);
  const [error, setError] = useState<ApiError>();
  const [phase, setPhase] = useState<ActionPhase>({ is: 'previewed' });
  const [round, setRound] = useState(0);
  const isStopped = useRef(false);
  const isFirst = useRef(true);
  const key = JSON.stringify(values);

  // `key` stands for the values, `round` previews again
  useEffect(() => {
    const controller = new AbortController();
    setPreviewing(true);
    const timer = setTimeout(
      () => {
        previewOf(action.input(values), controller.signal).then(
          (next) => {
            setPreview(next);
            setPreviewing(false);
            if (round === 0) setError(undefined);
          },
          (failure: unknown) => {
            if (controller.signal.aborted) return;
            setPreview(undefined);
            setPreviewing(false);
            setError(apiError(failure));
          },
        );
      },
      isFirst.current ? 0 : typingMs,
    );
    isFirst.current = false;
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key, round]);

  async function run(reason: string): Promise<void> {
    if (!preview?.digest) return;
    const done: ActionOutcome[] = [];
    let input = action.input(values);
    let digest: string | null | undefined = preview.digest;
    isStopped.current = false;
    setError(undefined);
    setPhase({ is: 'running', done });
    try {
      while (digest) {
        const { run: outcome }: RunMutation = await request(RunDocument, { action: input, digest, reason });
        done.push(outcome);
        if (!outcome.next || !action.continues || isStopped.current) break;
        setPhase({ is: 'running', done: [...done] });
        input = action.continues(input, outcome.next);
        digest = (await previewOf(input)).digest;
      }
      setPhase({ is: 'done', done, wasStopped: isStopped.current && !!done.at(-1)?.next });
    } catch (failure) {
      setError(apiError(failure));
      // What was previewed may no longer be so.
      setPhase(done.length > 0 ? { is: 'done', done, wasStopped: true } : { is: 'previewed' });
      setRound((before) => before + 1);
    }
  }

  const stop = () => {
    isStopped.current = true;
  };
  const change = (next: Values) => {
    setError(undefined);
    setValues(next);
  };
  return { values, setValues: change, preview, isPreviewing, error, phase, run, stop };
}

async function previewOf(action: ActionInput, signal?: AbortSignal): Promise<ActionPreview> {
  return (await request(PreviewDocument, { action }, signal)).preview;
}
