import { useEffect, useRef, useState } from 'preact/hooks';
import { ActionButton } from '../actions/action-button.tsx';
import { versionAction } from '../actions/version-actions.ts';
import { VersionDetailDocument, type VersionDetailQuery } from '../gql/graphql.ts';
import { Ago, counted } from '../parts/format.tsx';
import { HealthBadge, Notice } from '../parts/marks.tsx';
import { Problem } from '../parts/problem.tsx';
import { storeText } from '../parts/stores.tsx';
import { Loading } from '../parts/table.tsx';
import { to } from '../router.ts';
import { live } from '../server/overview.ts';
import { useStore } from '../server/store.ts';
import { useQuery } from '../server/use-query.ts';
import { VersionHistory, VersionRuns } from './version-history.tsx';
import { VersionRollout } from './version-rollout.tsx';
import { VersionStatus } from './version-status.tsx';
import { VersionTableTab } from './version-table.tsx';
import { VersionVerify } from './version-verify.tsx';

export type VersionDetail = NonNullable<VersionDetailQuery['version']>;

const parts = [
  ['status', 'Status'],
  ['history', 'History'],
  ['verify', 'Verify and diff'],
  ['rollout', 'Rollout'],
  ['table', 'Table'],
  ['runs', 'Run log'],
] as const;

interface VersionPageProps {
  readonly id: string;
  readonly part: string;
}

export function VersionPage({ id, part }: VersionPageProps) {
  const { data, error, reload } = useQuery(VersionDetailDocument, { id });
  useReloadOnChange(id, reload);
  const [actionsDone, setActionsDone] = useState(0);
  const version = data?.version;
  const done = () => {
    reload();
    // The parts have queries of their own, and begin again.
    setActionsDone(actionsDone + 1);
  };
  return (
    <>
      <p class="crumbs">
        <a href="#/">Overview</a>
      </p>
      <div class="title">
        <h1>{id}</h1>
        {version && <HealthBadge health={version.health} />}
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !version && <Notice tone="quiet">The registry has no version of this name.</Notice>}
      {version && (
        <>
          <Standing version={version} />
          <Actions version={version} onDone={done} />
          <nav class="tabs" aria-label={`Parts of ${id}`}>
            {parts.map(([name, title]) => (
              <a key={name} href={to(['versions', id, name])} aria-current={name === part ? 'page' : undefined}>
                {title}
              </a>
            ))}
          </nav>
          <Part key={actionsDone} part={part} version={version} onDone={reload} />
        </>
      )}
    </>
  );
}

interface PartProps {
  readonly part: string;
  readonly version: VersionDetail;
  readonly onDone: () => void;
}

function Part({ part, version, onDone }: PartProps) {
  switch (part) {
    case 'history':
      return <VersionHistory version={version} />;
    case 'verify':
      return <VersionVerify version={version} />;
    case 'rollout':
      return <VersionRollout version={version} />;
    case 'table':
      return <VersionTableTab version={version} onDone={onDone} />;
    case 'runs':
      return <VersionRuns id={version.id} />;
    default:
      return <VersionStatus version={version} />;
  }
}

// In milliseconds. The overview reports changes each second; the details are many statements.
const leastBetweenMs = 3000;

/** Asks again when the overview reports that the version has changed. */
function useReloadOnChange(id: string, reload: () => void): void {
  const line = useStore(live).versions.get(id);
  const last = useRef(Date.now());
  // `line` is another object after each change
  useEffect(() => {
    if (!line) return;
    const wait = Math.max(last.current + leastBetweenMs - Date.now(), 0);
    const timer = setTimeout(() => {
      last.current = Date.now();
      reload();
    }, wait);
    return () => clearTimeout(timer);
  }, [line]);
}

/** What the version is doing, and what keeps it from doing it. */
function Standing({ version }: { readonly version: VersionDetail }) {
  const { state, answers, heldReason, paused, error, rebuild, retrying, missingIndexes, startsAfter } = version;
  return (
    <div class="alerts">
      <p class="lead">
        {state.toLowerCase()}
        {answers ? ', answers clients' : ', answers no client'}
        {version.inline && `, inline: ${version.inline}`}
        {storeText(version.store) && `, ${storeText(version.store)}`}
        {!version.isDeclared && ', not declared by this process'}
        {startsAfter && `, holds only events after position ${startsAfter}`}
      </p>
      {version.unchecked && (
        <Notice tone="bad" title="Appends are refused.">
          {version.unchecked}
        </Notice>
      )}
      {error && (
        <Notice tone="bad" title="Its processor has stopped.">
          {error.message} (<Ago at={error.at} />) {error.code && <code>{error.code}</code>}
        </Notice>
      )}
      {heldReason && (
        <Notice tone="warn" title="Held.">
          {heldReason} <a href={to(['versions', version.id, 'rollout'])}>What changes for clients</a>
        </Notice>
      )}
      {paused && (
        <Notice tone="warn" title={`Paused by ${paused.by}.`}>
          {paused.reason} (<Ago at={paused.since} />)
        </Notice>
      )}
      {retrying && (
        <Notice tone="warn" title={`Tries event ${retrying.position} again.`}>
          {retrying.message} ({retrying.attempts} attempts)
        </Notice>
      )}
      {rebuild?.heldReason && (
        <Notice tone="warn" title="The rebuilt table does not take over.">
          {rebuild.heldReason}
        </Notice>
      )}
      {missingIndexes.length > 0 && (
        <Notice tone="warn" title="Indexes are missing:">
          {missingIndexes.join(', ')}. Reads that need them scan the table.
        </Notice>
      )}
      {version.deadLetters.value > 0 && (
        <Notice tone="warn">
          <a href={to(['dead-letters'], { of: version.id })}>{counted(version.deadLetters, 'dead letter')}</a>
        </Notice>
      )}
    </div>
  );
}

interface ActionsProps {
  readonly version: VersionDetail;
  readonly onDone: () => void;
}

function Actions({ version, onDone }: ActionsProps) {
  const actions = version.actions.flatMap((name) => versionAction(name, version) ?? []);
  if (actions.length === 0) return null;
  return (
    <fieldset class="actions" aria-label={`Actions on ${version.id}`}>
      {actions.map((action) => (
        <ActionButton key={action.name} action={action} onDone={onDone} />
      ))}
      <a class="button" href={to(['rows'], { projection: version.projection })}>
        Step through a row
      </a>
    </fieldset>
  );
}
