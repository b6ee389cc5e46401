#include "profile/recorder.h"

#include "base/error.h"

#include <algorithm>
#include <utility>

namespace tokamak {
namespace {

WorkClass work_class_of(const RecordedWork& work) {
  if (work.kind == Work::Kind::kLaunch) return work_class(work.node());
  return work.kind == Work::Kind::kTransfer ? WorkClass::kCommunication : WorkClass::kCopy;
}

}  // namespace

const Node& RecordedWork::node() const { return plan->graph.nodes()[size_t(plan->launches[size_t(index)].node)]; }

double RecordedWork::seconds() const {
  if (kernels.empty()) return end - begin;
  double seconds = 0, until = kernels.front().begin;
  for (const DeviceActivity& kernel : kernels) {  // in order of time; one may begin before the one before it ends
    seconds += std::max(0.0, kernel.end - std::max(kernel.begin, until));
    until = std::max(until, kernel.end);
  }
  return seconds;
}

void WorkRecorder::start() {
  works_.clear(), marks_.clear(), until_.clear(), open_.clear();
  backend_.synchronize();
  start_ = Clock::now();
  start_mark_ = trace_ ? nullptr : backend_.mark_time(0);
}

void WorkRecorder::start_watching() {
  backend_.synchronize();
  trace_ = backend_.trace_device();
  start();
}

double WorkRecorder::now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

std::string WorkRecorder::clock() const {
  if (trace_) return "the device's activity records";
  return start_mark_ ? "events between launches" : "the host's clock";
}

void WorkRecorder::begin(const Work& work) {
  open_.push_back(works_.size());
  works_.push_back({.kind = work.kind,
                    .plan = work.plan,
                    .index = work.index,
                    .stream = work.stream,
                    .bytes = work.bytes,
                    .name = std::string(work.name)});
  until_.push_back(0);
  marks_.push_back({.begin = trace_ ? nullptr : backend_.mark_time(work.stream), .end = nullptr});
  if (trace_) trace_->push(works_.size());
  works_.back().asked = now();
}

void WorkRecorder::end() {
  TOKAMAK_CHECK(!open_.empty(), "work that ends has not begun");
  size_t index = open_.back();
  RecordedWork& work = works_[index];
  work.asked_until = now();
  if (trace_)
    trace_->pop();
  else
    marks_[index].end = backend_.mark_time(work.stream);
  until_[index] = works_.size();
  open_.pop_back();
}

void WorkRecorder::take_marks() {
  for (size_t i = 0; i < works_.size(); ++i) {
    RecordedWork& work = works_[i];
    const Marks& marks = marks_[i];
    work.begin = marks.begin ? marks.begin->seconds_since(*start_mark_) : work.asked;
    work.end = marks.end ? marks.end->seconds_since(*start_mark_) : work.asked_until;
  }
}

// Work without a kernel takes no time. A run reaches from when it was asked for, or from the end of the run before, to
// the end of all that it contains.
void WorkRecorder::take_trace() {
  for (DeviceActivity& activity : trace_->take()) works_[size_t(activity.tag) - 1].kernels.push_back(activity);
  for (size_t i = 0; i < works_.size(); ++i) {
    RecordedWork& work = works_[i];
    work.begin = work.kernels.empty() ? work.asked : work.kernels.front().begin;
    work.end = work.begin;
    for (const DeviceActivity& kernel : work.kernels) work.end = std::max(work.end, kernel.end);
  }
  double free = 0;
  for (size_t i = 0; i < works_.size(); ++i) {
    RecordedWork& run = works_[i];
    if (run.kind != Work::Kind::kRun) continue;
    run.begin = std::max(run.asked, free);
    run.end = std::max({run.asked_until, run.end, run.begin});
    for (size_t inner = i + 1; inner < until_[i]; ++inner) run.end = std::max(run.end, works_[inner].end);
    free = run.end;
  }
  trace_.reset();
}

std::vector<RecordedWork> WorkRecorder::take() {
  backend_.synchronize();
  trace_ ? take_trace() : take_marks();
  marks_.clear();
  return std::exchange(works_, {});
}

void add_spans(const RecordedWork& work, std::vector<ActivitySpan>& spans) {
  ActivitySpan span{.begin = work.begin, .end = work.end};
  if (work.kind == Work::Kind::kRun) {
    span.activity = Activity::kRun;
    return spans.push_back(span);
  }
  span.work = work_class_of(work);
  span.activity = activity_of(span.work);
  if (work.kernels.empty()) return spans.push_back(span);
  for (const DeviceActivity& kernel : work.kernels) {
    span.begin = kernel.begin, span.end = kernel.end;
    spans.push_back(span);
  }
}

}  // namespace tokamak
