import { useEffect, useRef, useState } from 'preact/hooks';
import { DiffDocument, type DiffQuery, VerifyDocument, type VerifySubscription } from '../gql/graphql.ts';
import { Figures, Section } from '../parts/figures.tsx';
import { Field } from '../parts/form.tsx';
import { keyText, number, percent, plain } from '../parts/format.tsx';
import { Notice } from '../parts/marks.tsx';
import { Problem } from '../parts/problem.tsx';
import { Table } from '../parts/table.tsx';
import { to } from '../router.ts';
import { type ApiError, request, subscribe } from '../server/api.ts';
import { useRights } from '../server/caller.ts';
import { live } from '../server/overview.ts';
import { useStore } from '../server/store.ts';
import { apiError } from '../server/use-query.ts';
import type { VersionDetail } from './version.tsx';
import { DifferenceTable } from './version-status.tsx';

/** Whether the rows are right: compared with the log, and with another version. Nothing is written. */
export function VersionVerify({ version }: { readonly version: VersionDetail }) {
  const mayVerify = useRights().has('VERIFY');
  if (!mayVerify) return <Notice tone="quiet">Your token lacks the right VERIFY.</Notice>;
  if (!version.isDeclared)
    return <Notice tone="quiet">This process does not declare the version, so it can’t fold the log for it.</Notice>;
  return (
    <>
      <Verify id={version.id} />
      <Diff version={version} />
    </>
  );
}

function Verify({ id }: { readonly id: string }) {
  const [oneOf, setOneOf] = useState('1');
  const [progress, setProgress] = useState<VerifySubscription['verify']>();
  const [error, setError] = useState<ApiError>();
  const [running, setRunning] = useState<AbortController>();
  const current = useRef<AbortController>(null);
  useEffect(() => () => current.current?.abort(), []);

  function start(): void {
    const controller = new AbortController();
    current.current = controller;
    setRunning(controller);
    setProgress(undefined);
    setError(undefined);
    const onData = ({ verify }: VerifySubscription) => setProgress(verify);
    subscribe(VerifyDocument, { version: id, oneOf: Number(oneOf) || 1 }, { onData }, controller.signal)
      .catch((failure: unknown) => {
        if (!controller.signal.aborted) setError(apiError(failure));
      })
      .finally(() => setRunning(undefined));
  }

  const share = progress ? Number(progress.position) / Math.max(Number(progress.of), 1) : 0;
  return (
    <Section title="Verify">
      <p class="lead">
        Folds the log again and compares the result with the rows. This takes time and reads the whole log.
      </p>
      <form
        class="filter"
        onSubmit={(event) => {
          event.preventDefault();
          start();
        }}
      >
        <Field label="One row in (1: all rows)">
          {(inputId) => (
            <input
              id={inputId}
              type="number"
              min={1}
              value={oneOf}
              onInput={({ currentTarget }) => setOneOf(currentTarget.value)}
            />
          )}
        </Field>
        <div class="buttons">
          <button type="submit" class="primary" disabled={!!running}>
            Verify
          </button>
          {running && (
            <button type="button" onClick={() => running.abort()}>
              Stop
            </button>
          )}
        </div>
      </form>
      {running && (
        <span class="progress">
          <progress max={1} value={share} aria-label="Progress of the verification" />
          <span>{percent(share)}</span>
        </span>
      )}
      <div aria-live="polite">
        {error && <Problem error={error} />}
        {progress?.result && <VerifyResult result={progress.result} />}
      </div>
    </Section>
  );
}

function VerifyResult({ result }: { readonly result: NonNullable<VerifySubscription['verify']['result']> }) {
  const { differences, rowsCompared, position, samples } = result;
  return (
    <>
      <Notice tone={differences === '0' ? 'good' : 'bad'}>
        {number(rowsCompared)} rows compared up to position {number(position)}:{' '}
        {differences === '0' ? 'all are as the log says.' : `${number(differences)} differ.`}
      </Notice>
      {samples.length > 0 && <DifferenceTable samples={samples} />}
    </>
  );
}

function Diff({ version }: { readonly version: VersionDetail }) {
  const { versions } = useStore(live);
  const others = [...versions.values()]
    .filter(({ projection, id, isDeclared }) => projection === version.projection && id !== version.id && isDeclared)
    .map(({ id }) => id);
  const [chosen, setChosen] = useState<string>();
  const [state, setState] = useState<{ diff?: DiffQuery['diff']; error?: ApiError; isRunning: boolean }>({
    isRunning: false,
  });
  const other = chosen ?? others[0];
  if (!other)
    return (
      <Section title="Diff">
        <p class="empty">There is no other version to compare with.</p>
      </Section>
    );
  const numberOf = (id: string) => versions.get(id)?.number ?? 0;
  const start = () => {
    const [older = other, newer = other] = [other, version.id].sort((a, b) => numberOf(a) - numberOf(b));
    setState({ isRunning: true });
    request(DiffDocument, { older, newer }).then(
      ({ diff }) => setState({ diff, isRunning: false }),
      (error: unknown) => setState({ error: apiError(error), isRunning: false }),
    );
  };
  return (
    <Section title="Diff">
      <form
        class="filter"
        onSubmit={(event) => {
          event.preventDefault();
          start();
        }}
      >
        <Field label="Compare the rows with those of">
          {(id) => (
            <select id={id} value={other} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
              {others.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          )}
        </Field>
        <div class="buttons">
          <button type="submit" class="primary" disabled={state.isRunning}>
            {state.isRunning ? 'Comparing …' : 'Compare'}
          </button>
        </div>
      </form>
      <div aria-live="polite">
        {state.error && <Problem error={state.error} />}
        {state.diff && <DiffResult diff={state.diff} projection={version.projection} />}
      </div>
    </Section>
  );
}

function DiffResult({ diff, projection }: { readonly diff: DiffQuery['diff']; readonly projection: string }) {
  return (
    <>
      <Figures
        items={[
          { name: 'Rows', value: number(diff.rows), note: `at position ${number(diff.position)}` },
          { name: `Only in ${diff.older}`, value: number(diff.onlyOlder) },
          { name: `Only in ${diff.newer}`, value: number(diff.onlyNewer) },
        ]}
      />
      <Table
        caption="Columns that differ"
        columns={[
          { title: 'Column', isName: true, cell: ({ name }) => <code>{name}</code> },
          { title: 'Rows that differ', isNumber: true, cell: ({ rows }) => number(rows) },
        ]}
        items={diff.columns.filter(({ rows }) => rows !== '0')}
        keyOf={({ name }) => name}
        empty="No column differs."
      />
      {diff.samples.length > 0 && (
        <Table
          caption="Rows that differ"
          columns={[
            {
              title: 'Row',
              isName: true,
              cell: ({ key }) => (
                <a href={to(['rows'], { projection, key: JSON.stringify(key) })}>
                  <code>{keyText(key)}</code>
                </a>
              ),
            },
            { title: diff.older, isText: true, cell: ({ older }) => <RowText row={older} /> },
            { title: diff.newer, isText: true, cell: ({ newer }) => <RowText row={newer} /> },
          ]}
          items={diff.samples}
          keyOf={({ key }) => JSON.stringify(key)}
          empty=""
        />
      )}
    </>
  );
}

function RowText({ row }: { readonly row: unknown }) {
  if (row === null || typeof row !== 'object') return <>no row</>;
  return (
    <ul class="row-text">
      {Object.entries(row).map(([name, value]) => (
        <li key={name}>
          {name}: <code>{plain(value)}</code>
        </li>
      ))}
    </ul>
  );
}
