import { useEffect, useRef, useState } from 'preact/hooks';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/form.tsx';
import { count, number } from '../parts/format.tsx';
import { Notice } from '../parts/marks.tsx';
import { Loading } from '../parts/table.tsx';
import { type Action, type ActionOption, overcoming, type Values } from './action.ts';
import { type ActionOutcome, type ActionPreview, type ActionRun, useActionRun } from './action-run.ts';

interface ActionDialogProps {
  readonly action: Action;
  readonly onDone: (() => void) | undefined;
  readonly onClose: () => void;
}

/** Shows what an action will do, asks for a reason, runs it, and shows what was done. */
export function ActionDialog({ action, onDone, onClose }: ActionDialogProps) {
  const state = useActionRun(action);
  const { phase } = state;
  const close = () => {
    if (phase.is === 'running') state.stop();
    if (phase.is !== 'previewed') onDone?.();
    onClose();
  };
  return (
    <Dialog title={action.title} onClose={close} isDone={phase.is === 'done'}>
      {phase.is === 'previewed' ? (
        <Proposal action={action} state={state} />
      ) : (
        <Progress state={state} done={phase.done} onClose={close} />
      )}
    </Dialog>
  );
}

function Proposal({ action, state }: { readonly action: Action; readonly state: ActionRun }) {
  const { values, setValues, preview, isPreviewing, error } = state;
  const [reason, setReason] = useState('');
  const [wasSent, setSent] = useState(false);
  const isReady = !!preview?.digest && preview.isAllowed && !isPreviewing;
  const lacksReason = reason.trim() === '';
  const known = new Set(action.options.map(({ name }) => name));
  const overcomes = [
    ...new Set([...(preview?.overcomeBy ?? []), ...Object.keys(overcoming).filter((name) => values[name] === true)]),
  ];
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        setSent(true);
        if (isReady && !lacksReason) void state.run(reason.trim());
      }}
    >
      {action.options.map(
        (option) =>
          (option.isShown?.(values) ?? true) && (
            <OptionInput key={option.name} option={option} values={values} setValues={setValues} />
          ),
      )}
      <div aria-live="polite" aria-busy={isPreviewing} class={`preview${isPreviewing && preview ? ' stale' : ''}`}>
        {error && (
          <Notice tone="bad" title={error.code === 'PREVIEW_OUTDATED' ? 'The state has changed.' : 'Refused.'}>
            {error.code === 'PREVIEW_OUTDATED' ? 'Nothing was done. Read what it would do now.' : error.message}
          </Notice>
        )}
        {preview ? <PreviewText preview={preview} /> : !error && <Loading />}
      </div>
      {overcomes
        .filter((name) => !known.has(name))
        .map((name) => (
          <OptionInput
            key={name}
            option={{ kind: 'checkbox', name, label: overcoming[name] ?? name }}
            values={values}
            setValues={setValues}
          />
        ))}
      <Field label="Reason" hint="Recorded in the audit log with the name of your token.">
        {(id, hintId) => (
          <textarea
            id={id}
            rows={2}
            maxLength={2000}
            required
            aria-describedby={hintId}
            aria-invalid={wasSent && lacksReason}
            value={reason}
            onInput={({ currentTarget }) => setReason(currentTarget.value)}
          />
        )}
      </Field>
      <footer>
        {preview && !preview.isAllowed && <p class="quiet-text">Your token lacks the right {preview.right}.</p>}
        <button type="submit" class="primary" disabled={!isReady}>
          {action.label}
        </button>
      </footer>
    </form>
  );
}

function PreviewText({ preview }: { readonly preview: ActionPreview }) {
  const { summary, details, warnings, refusal, concerns } = preview;
  return (
    <>
      <p class="summary">
        {summary}
        {concerns && <strong> ({count(concerns)})</strong>}
      </p>
      {details.length > 0 && (
        <ul>
          {details.map((detail) => (
            <li key={detail}>{detail}</li>
          ))}
        </ul>
      )}
      {warnings.map((warning) => (
        <Notice key={warning} tone="warn">
          {warning}
        </Notice>
      ))}
      {refusal && (
        <Notice tone="bad" title="Not possible now.">
          {refusal}
        </Notice>
      )}
    </>
  );
}

interface ProgressProps {
  readonly state: ActionRun;
  readonly done: readonly ActionOutcome[];
  readonly onClose: () => void;
}

function Progress({ state, done, onClose }: ProgressProps) {
  const { phase, error } = state;
  const isRunning = phase.is === 'running';
  const last = done.at(-1);
  const place = useRef<HTMLDivElement>(null);
  const closing = useRef<HTMLButtonElement>(null);
  // The button that had the focus is gone.
  useEffect(() => (isRunning ? place : closing).current?.focus(), [isRunning]);
  return (
    <div class="outcome" ref={place} tabIndex={-1}>
      <div role="status">
        {done.length > 1 ? (
          <p class="summary">
            {number(sum(done, 'folded'))} folded, {number(sum(done, 'discarded'))} discarded,{' '}
            {number(sum(done, 'left'))} left.
          </p>
        ) : (
          last && <Notice tone="good">{last.summary}</Notice>
        )}
        {isRunning && <p>{done.length > 0 ? 'Continuing with the rest …' : 'Running …'}</p>}
        {phase.is === 'done' && phase.wasStopped && <p>Stopped. What was done stays done; the rest is unchanged.</p>}
        {error && (
          <Notice tone="bad" title="Refused.">
            {error.message}
          </Notice>
        )}
      </div>
      <footer>
        {isRunning && done.length > 0 ? (
          <button type="button" onClick={state.stop}>
            Stop
          </button>
        ) : (
          <button type="button" class="primary" disabled={isRunning} onClick={onClose} ref={closing}>
            Close
          </button>
        )}
      </footer>
    </div>
  );
}

function sum(done: readonly ActionOutcome[], name: 'folded' | 'discarded' | 'left'): number {
  return done.reduce((total, outcome) => total + (outcome[name] ?? 0), 0);
}

interface OptionInputProps {
  readonly option: ActionOption;
  readonly values: Values;
  readonly setValues: (values: Values) => void;
}

function OptionInput({ option, values, setValues }: OptionInputProps) {
  const { name, label, hint } = option;
  const set = (value: Values[string]) => setValues({ ...values, [name]: value });
  if (option.kind === 'checkbox')
    return (
      <label class="check">
        <input
          type="checkbox"
          name={name}
          checked={values[name] === true}
          onChange={({ currentTarget }) => set(currentTarget.checked)}
        />
        {label}
      </label>
    );
  return (
    <Field label={label} {...(hint ? { hint } : {})}>
      {(id, hintId) =>
        option.kind === 'choice' ? (
          <select
            id={id}
            name={name}
            value={String(values[name] ?? '')}
            onChange={({ currentTarget }) => set(currentTarget.value)}
          >
            {option.choices.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        ) : (
          <input
            id={id}
            name={name}
            type={option.kind === 'number' ? 'number' : 'text'}
            list={undefined}
            {...(option.kind === 'number' ? { min: option.min, max: option.max, step: option.step ?? 1 } : {})}
            value={String(values[name] ?? '')}
            aria-describedby={hintId}
            onInput={({ currentTarget }) => set(currentTarget.value)}
          />
        )
      }
    </Field>
  );
}
