import type { ComponentChildren } from 'preact';
import type { Health, StepOutcome } from '../gql/graphql.ts';

export type Tone = 'good' | 'info' | 'warn' | 'bad' | 'quiet';

type Shape = 'dot' | 'ring' | 'half' | 'bars' | 'triangle' | 'cross' | 'diamond' | 'dash' | 'arrow';

// A state is told by its text, a shape and a colour, so none of them is needed to read it.
const paths: Readonly<Record<Shape, string>> = {
  dot: 'M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3z',
  ring: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zm0 2a4 4 0 1 1 0 8 4 4 0 0 1 0-8z',
  half: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zm0 2v8a4 4 0 0 1 0-8z',
  bars: 'M4 3h3v10H4zm5 0h3v10H9z',
  triangle: 'M8 1.5 15 14H1zM7.2 6v4h1.6V6zm0 5v1.5h1.6V11z',
  cross: 'M3.5 2 8 6.5 12.5 2 14 3.5 9.5 8l4.500 4.500L12.500 14 8 9.500 3.500 14 2 12.500 6.500 8 2 3.500z',
  diamond: 'M8 1l7 7-7 7-7-7zm0 3L4 8l4 4 4-4z',
  dash: 'M3 7h10v2H3z',
  arrow: 'M3 4l5 4-5 4zm5 0l5 4-5 4z',
};

export function Icon({ shape }: { readonly shape: Shape }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path fill-rule="evenodd" d={paths[shape]} />
    </svg>
  );
}

interface BadgeProps {
  readonly tone: Tone;
  readonly shape: Shape;
  readonly children: ComponentChildren;
}

export function Badge({ tone, shape, children }: BadgeProps) {
  return (
    <span class={`badge ${tone}`}>
      <Icon shape={shape} />
      <span>{children}</span>
    </span>
  );
}

interface HealthLook {
  readonly text: string;
  readonly tone: Tone;
  readonly shape: Shape;
}

/** The worst first. */
export const healths: Readonly<Record<Health, HealthLook>> = {
  UNCHECKED: { text: 'unique values unchecked', tone: 'bad', shape: 'cross' },
  STOPPED: { text: 'stopped', tone: 'bad', shape: 'cross' },
  UNOWNED: { text: 'no owner', tone: 'bad', shape: 'diamond' },
  STALLED: { text: 'stalled', tone: 'bad', shape: 'triangle' },
  HELD: { text: 'held', tone: 'warn', shape: 'triangle' },
  PAUSED: { text: 'paused', tone: 'warn', shape: 'bars' },
  BUILDING: { text: 'building', tone: 'info', shape: 'half' },
  BEHIND: { text: 'behind', tone: 'info', shape: 'arrow' },
  CURRENT: { text: 'current', tone: 'good', shape: 'dot' },
  RETIRED: { text: 'retired', tone: 'quiet', shape: 'dash' },
};

export const healthOrder = Object.keys(healths) as readonly Health[];

export function HealthBadge({ health }: { readonly health: Health }) {
  const { text, tone, shape } = healths[health];
  return (
    <Badge tone={tone} shape={shape}>
      {text}
    </Badge>
  );
}

const processorStates: Readonly<Record<string, Omit<HealthLook, 'text'>>> = {
  running: { tone: 'good', shape: 'dot' },
  idle: { tone: 'quiet', shape: 'ring' },
  stopped: { tone: 'bad', shape: 'cross' },
  paused: { tone: 'warn', shape: 'bars' },
};

/** `running`, `idle`, `stopped`, `paused`. */
export function ProcessorBadge({ state }: { readonly state: string }) {
  const { tone, shape } = processorStates[state] ?? { tone: 'quiet', shape: 'ring' };
  return (
    <Badge tone={tone} shape={shape}>
      {state}
    </Badge>
  );
}

const outcomes: Readonly<Record<StepOutcome, HealthLook>> = {
  FOLDED: { text: 'folded', tone: 'good', shape: 'dot' },
  IGNORED: { text: 'not handled', tone: 'quiet', shape: 'dash' },
  FAILED: { text: 'fails', tone: 'bad', shape: 'cross' },
  LEFT_OUT: { text: 'left out', tone: 'warn', shape: 'diamond' },
};

export function OutcomeBadge({ outcome }: { readonly outcome: StepOutcome }) {
  const { text, tone, shape } = outcomes[outcome];
  return (
    <Badge tone={tone} shape={shape}>
      {text}
    </Badge>
  );
}

interface NoticeProps {
  readonly tone: Tone;
  readonly title?: string;
  readonly children?: ComponentChildren;
}

const noticeShapes: Readonly<Record<Tone, Shape>> = {
  good: 'dot',
  info: 'ring',
  warn: 'triangle',
  bad: 'cross',
  quiet: 'dash',
};

/** A message to the operator, with what it is about in front. */
export function Notice({ tone, title, children }: NoticeProps) {
  return (
    <div class={`notice ${tone}`}>
      <Icon shape={noticeShapes[tone]} />
      <div>
        {title && <strong>{title}</strong>} {children}
      </div>
    </div>
  );
}
