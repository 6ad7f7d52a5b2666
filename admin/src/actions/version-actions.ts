import type { ActionInput, ActionName } from '../gql/graphql.ts';
import type { Action, Values } from './action.ts';

interface Target {
  readonly id: string;
  readonly projection: string;
  /** Its table snapshots, the newest first. */
  readonly snapshots?: readonly { readonly id: string; readonly position: string; readonly takenAt: string }[];
}

type Simple = 'CANCEL_REBUILD' | 'ACCEPT_REBUILD' | 'PAUSE' | 'RESUME' | 'TAKE_SNAPSHOT' | 'STOP_SHADOW';

const simple: Readonly<Record<Simple, readonly [label: string, input: (version: string) => ActionInput]>> = {
  CANCEL_REBUILD: ['Cancel rebuild', (version) => ({ cancelRebuild: { version } })],
  ACCEPT_REBUILD: ['Accept rebuild', (version) => ({ acceptRebuild: { version } })],
  PAUSE: ['Pause', (version) => ({ pause: { version } })],
  RESUME: ['Resume', (version) => ({ resume: { version } })],
  TAKE_SNAPSHOT: ['Take snapshot', (version) => ({ takeSnapshot: { version } })],
  STOP_SHADOW: ['Stop comparison', (version) => ({ stopShadow: { version } })],
};

/** The action of a version, or undefined if it needs more than the version: a snapshot. */
export function versionAction(name: ActionName, target: Target): Action | undefined {
  const { id, projection } = target;
  const described = name in simple ? simple[name as Simple] : undefined;
  if (described) return action(name, described[0], id, () => described[1](id));
  switch (name) {
    case 'ACTIVATE':
      return action(name, 'Activate', id, ({ allowBreaking }) => ({
        activate: { version: id, ...flag({ allowBreaking }) },
      }));
    case 'ROLLBACK':
      return action(name, 'Roll back', projection, () => ({ rollback: { projection } }));
    case 'RETIRE':
      return retire(id);
    case 'REBUILD':
      return rebuild(target);
    case 'START_CANARY':
      return canary(id);
    case 'END_CANARY':
      return action(name, 'End canary', projection, () => ({ endCanary: { projection } }));
    case 'START_SHADOW':
      return shadow(id);
    case 'RECALL_DISCARDS':
      return action(name, 'Recall discards', id, ({ key }) => ({ recallDiscards: { version: id, ...parsed(key) } }));
    default:
      return undefined;
  }
}

export function snapshotAction(name: 'RESTORE_SNAPSHOT' | 'DROP_SNAPSHOT', version: string, snapshot: string): Action {
  const title = `${version}, snapshot ${snapshot}`;
  return name === 'RESTORE_SNAPSHOT'
    ? action(name, 'Restore', title, () => ({ restoreSnapshot: { version, snapshot } }))
    : action(name, 'Drop', title, () => ({ dropSnapshot: { version, snapshot } }));
}

function action(name: ActionName, label: string, of: string, input: Action['input']): Action {
  return { name, label, title: `${label}: ${of}`, options: [], initial: {}, input };
}

function retire(id: string): Action {
  const hint = 'Its table is dropped after that many hours.';
  return {
    ...action('RETIRE', 'Retire', id, ({ graceHours, force }) => ({
      retire: { version: id, graceHours: Number(graceHours), ...flag({ force }) },
    })),
    options: [{ kind: 'number', name: 'graceHours', label: 'Keep the table for (hours)', hint, min: 0, max: 8760 }],
    initial: { graceHours: 24 },
  };
}

function rebuild({ id, snapshots = [] }: Target): Action {
  return {
    ...action('REBUILD', 'Rebuild', id, ({ form, from, snapshot, position }) => ({
      rebuild: {
        version: id,
        inPlace: form === 'in place',
        ...(from === 'snapshot' && snapshot ? { fromSnapshot: String(snapshot) } : {}),
        ...(from === 'position' && position ? { fromPosition: String(position) } : {}),
      },
    })),
    options: [
      {
        kind: 'choice',
        name: 'form',
        label: 'How',
        choices: [
          ['beside', 'Beside: into a new table, while the old one serves'],
          ['in place', 'In place: the version is not served meanwhile'],
        ],
      },
      {
        kind: 'choice',
        name: 'from',
        label: 'From',
        choices: [
          ['start', 'The start of the log'],
          ...(snapshots.length > 0
            ? ([
                ['snapshot', 'A table snapshot'],
                ['position', 'The newest snapshot at or below a position'],
              ] as const)
            : []),
        ],
      },
      {
        kind: 'choice',
        name: 'snapshot',
        label: 'Snapshot',
        choices: snapshots.map(
          (each) => [each.id, `${each.id}: at position ${each.position}, ${each.takenAt}`] as const,
        ),
        isShown: ({ from }) => from === 'snapshot',
      },
      { kind: 'text', name: 'position', label: 'Position', isShown: ({ from }) => from === 'position' },
    ],
    initial: { form: 'beside', from: 'start', snapshot: snapshots[0]?.id },
  };
}

function canary(id: string): Action {
  return {
    ...action('START_CANARY', 'Start canary', id, ({ percent, header, headerValue, allowBreaking }) => ({
      startCanary: {
        version: id,
        percent: Number(percent) || 0,
        ...(header ? { header: String(header) } : {}),
        ...(header && headerValue ? { headerValue: String(headerValue) } : {}),
        ...flag({ allowBreaking }),
      },
    })),
    options: [
      { kind: 'number', name: 'percent', label: 'Share of the clients (%)', min: 0, max: 100, step: 0.1 },
      { kind: 'text', name: 'header', label: 'And requests with this header', hint: 'Optional' },
      {
        kind: 'text',
        name: 'headerValue',
        label: 'With this value',
        hint: 'Optional',
        isShown: ({ header }) => !!header,
      },
    ],
    initial: { percent: 5 },
  };
}

function shadow(id: string): Action {
  return {
    ...action('START_SHADOW', 'Compare live queries', id, ({ oneOf }) => ({
      startShadow: { version: id, oneOf: Number(oneOf) },
    })),
    options: [{ kind: 'number', name: 'oneOf', label: 'Compare one query in', min: 1, max: 1_000_000 }],
    initial: { oneOf: 10 },
  };
}

/** A flag that is set only if the operator has chosen it. */
function flag(values: Values): Readonly<Record<string, boolean>> {
  return Object.fromEntries(Object.entries(values).flatMap(([name, value]) => (value === true ? [[name, true]] : [])));
}

function parsed(key: Values[string]): { key?: unknown } {
  return key === undefined || key === '' ? {} : { key: readKey(String(key)) };
}

/** A key as operators type it: JSON, or text as it is. */
export function readKey(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
